"""A Relax `main` in dataflow form together with the original model's node of each binding.

Relax passes written in C++ drop variable names, and with them the answer to "which node of my model
is this"; so the passes of ours that rewrite the graph before partitioning work on this form and
carry the origins along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax


@dataclass(frozen=True)
class OriginalNode:
    """A node of the model as the user knows it.

    Attributes:
        index: position in the original graph.
        name: the node's own name, or the name of its first output where it has none.
        op_type: the original framework's operation name.
        note: a sentence for the report, of what is done otherwise than its runtime may do it.
    """

    index: int
    name: str
    op_type: str
    note: str | None = None


@dataclass(frozen=True)
class Binding:
    """One `var = value` of the function, in topological order."""

    var: relax.Var
    value: relax.Expr

    @property
    def call(self) -> relax.Call | None:
        """The value if it is a call of a Relax operator."""
        is_op_call = isinstance(self.value, relax.Call) and isinstance(self.value.op, tvm.ir.Op)
        return self.value if is_op_call else None

    @property
    def op_name(self) -> str:
        """Name of the Relax operator, or the kind of expression where there is none."""
        call = self.call
        return call.op.name if call is not None else type(self.value).__name__

    @property
    def is_returned_only(self) -> bool:
        """Whether it is an alias or a tuple that only the function's return needs."""
        return self.call is None and not isinstance(self.value, relax.TupleGetItem)


@dataclass(frozen=True)
class Graph:
    """A `main` function of one dataflow block.

    Attributes:
        function: the Relax function; its body is one dataflow block and an output.
        origins: indexes of the original nodes that each bound variable computes (part of).
        nodes: all nodes of the original model, in its order.
        module: the module the function stands in (it may call TIR functions beside it).
    """

    function: relax.Function
    origins: Mapping[relax.Var, frozenset[int]]
    nodes: tuple[OriginalNode, ...]
    module: tvm.IRModule = field(repr=False)

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """All bindings in topological order."""
        return tuple(
            Binding(b.var, b.value)
            for block in self.function.body.blocks
            for b in block.bindings
            if isinstance(b, relax.VarBinding)
        )

    @property
    def inputs(self) -> tuple[relax.Var, ...]:
        """The function's parameters."""
        return tuple(self.function.params)

    @cached_property
    def outputs(self) -> tuple[relax.Expr, ...]:
        """What the function returns, tuples taken apart, aliases resolved."""
        return tuple(_flatten(self.function.body.body, self.value_of))

    @cached_property
    def value_of(self) -> Mapping[relax.Var, relax.Expr]:
        """Value bound to each variable."""
        return {b.var: b.value for b in self.bindings}

    @cached_property
    def users(self) -> Mapping[relax.Var, tuple[Binding, ...]]:
        """Bindings that read each variable; a variable only returned has none."""
        found: dict[relax.Var, list[Binding]] = {}
        for binding in self.bindings:
            for var in dict.fromkeys(free_vars(binding.value)):
                found.setdefault(var, []).append(binding)
        return {var: tuple(readers) for var, readers in found.items()}

    def producer(self, expr: relax.Expr, *names: str) -> relax.Call | None:
        """The call an expression is bound to, if it is of one of these Relax operators."""
        value = self.value_of.get(expr) if isinstance(expr, relax.Var) else None
        is_one = isinstance(value, relax.Call) and getattr(value.op, "name", "") in names
        return value if is_one else None

    def origin_of(self, var: relax.Var) -> frozenset[int]:
        """Original node indexes of a variable; empty for inputs and inserted layout changes."""
        return self.origins.get(var, frozenset())


def _flatten(expr: relax.Expr, values: Mapping[relax.Var, relax.Expr]) -> Iterable[relax.Expr]:
    if isinstance(expr, relax.Tuple):
        for item in expr.fields:
            yield from _flatten(item, values)
        return
    if isinstance(expr, relax.Var) and isinstance(values.get(expr), relax.Tuple | relax.Var):
        yield from _flatten(values[expr], values)
        return
    yield expr


def free_vars(expr: relax.Expr) -> Iterable[relax.Var]:
    """Variables an ANF expression reads, in order, with repetitions."""
    if isinstance(expr, relax.Var):
        yield expr
    elif isinstance(expr, relax.Call):
        for arg in expr.args:
            yield from free_vars(arg)
    elif isinstance(expr, relax.Tuple):
        for item in expr.fields:
            yield from free_vars(item)
    elif isinstance(expr, relax.TupleGetItem):
        yield from free_vars(expr.tuple_value)


def static_shape(expr: relax.Expr) -> tuple[int, ...] | None:
    """Shape of a tensor whose every dimension is known at compile time, else None."""
    ty = expr.ty
    if not isinstance(ty, relax.TensorType) or ty.shape is None:
        return None
    if not isinstance(ty.shape, relax.ShapeExpr):
        return None
    dims = tuple(ty.shape.values)  # once: every reading of a dimension crosses into C++
    return tuple(map(int, dims)) if all(isinstance(d, _KNOWN) for d in dims) else None


def dtype_of(expr: relax.Expr) -> str:
    """Element type of a tensor expression, "" where unknown."""
    ty = expr.ty
    return str(ty.dtype) if isinstance(ty, relax.TensorType) and ty.dtype is not None else ""


_KNOWN = (int, tvm.tirx.IntImm)


def constant_value(expr: relax.Expr) -> NDArray[np.generic] | None:
    """The array of a constant tensor expression, else None.

    A view of the constant, not to be written to: weights are read often, and copied they would be
    most of a compilation's memory traffic.
    """
    if isinstance(expr, tvm.ir.GenericConst) and isinstance(expr.value, tvm.runtime.Tensor):
        tensor = expr.value
        is_viewable = str(tensor.dtype) in _VIEWABLE
        array: NDArray[np.generic] = np.from_dlpack(tensor) if is_viewable else tensor.numpy()
        array.flags.writeable = False
        return array
    return None


# What NumPy takes through DLPack; the rest, bfloat16 and its like, is converted.
_VIEWABLE = frozenset(
    {
        *("bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    }
)
