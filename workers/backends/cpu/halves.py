"""float16 computed as float32, but for the sums of processors that have arithmetic for it.

TVM rounds after each operation, and LLVM makes each two conversions and one operation of float32,
by calls where the processor has no instruction to convert. As in ONNX Runtime, whatever is between
a model's inputs and outputs is float32, which holds every float16.

With arithmetic for it (arm64 fp16) convolutions and products with constant weights are summed in
float16, twice as many numbers to a register: what such a model asks for, errors included.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tvm
from tvm import relax

from workers.backends.cpu.vectors import Vectors
from workers.graph.attributes import attribute_fields, with_fields
from workers.graph.graph import constant_value, dtype_of

_HALF, _WIDE = "float16", "float32"


def widen_halves(module: tvm.IRModule, vectors: Vectors) -> tvm.IRModule:
    """The module with float16 at its functions' borders, and in sums where the target has those.

    Args:
        module: Relax functions of one dataflow block, before any is lowered. What a call of an
            external module reads and gives stays float16.
        vectors: of the target.
    """
    widened = {
        variable: _Function(function, vectors.computes_halves).run()
        for variable, function in module.functions.items()
        if isinstance(function, relax.Function) and _has_halves(function)
    }
    if not widened:
        return module
    return tvm.IRModule({**dict(module.functions.items()), **widened}, attrs=module.attrs)


def _bindings(function: relax.Function) -> Iterator[relax.VarBinding]:
    for block in function.body.blocks:
        yield from block.bindings


def _has_halves(function: relax.Function) -> bool:
    variables = (*function.params, *(binding.var for binding in _bindings(function)))
    return any(_HALF in str(variable.ty) for variable in variables)


class _Function:
    """One function, emitted anew."""

    def __init__(self, function: relax.Function, computes_halves: bool) -> None:
        self._old = function
        self._computes_halves = computes_halves
        self._builder = relax.BlockBuilder()
        self._new: dict[relax.Var, relax.Expr] = {}

    def run(self) -> relax.Function:
        old, builder = self._old, self._builder
        with builder.function("main", list(old.params)):
            with builder.dataflow():
                for parameter in old.params:
                    self._new[parameter] = self._cast(parameter, _HALF, _WIDE)
                for binding in _bindings(old):
                    value = builder.emit(self._value(binding.value))
                    self._new[binding.var] = self._cast(value, _HALF, _WIDE)
                result = builder.emit_output(self._as_declared(old.body.body))
            builder.emit_func_output(result)
        new = builder.get()["main"]
        return new.with_attrs(old.attrs) if old.attrs else new

    def _value(self, value: relax.Expr) -> relax.Expr:
        if isinstance(value, relax.TupleGetItem):
            return relax.TupleGetItem(self._expr(value.tuple_value), value.index)
        if not isinstance(value, relax.Call):
            return self._expr(value)
        if value.ty_args:  # of another module: it says the types of what it gives
            args = [self._as_declared(arg) for arg in value.args]
            return relax.Call(value.op, args, value.attrs, value.ty_args)
        if self._computes_halves and _is_sum(value):
            args = [self._as_declared(arg) for arg in value.args]
            return relax.Call(value.op, args, with_fields(value.attrs, out_dtype=_WIDE))
        args = [self._expr(arg) for arg in value.args]
        return relax.Call(value.op, args, _wide_attributes(value.attrs))

    def _expr(self, expr: relax.Expr) -> relax.Expr:
        """An old expression in the new function."""
        if isinstance(expr, relax.Var):
            return self._new[expr]
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._expr(item) for item in expr.fields])
        array = constant_value(expr)
        if array is not None and array.dtype == np.float16:
            return relax.const(array.astype(np.float32))
        return expr

    def _as_declared(self, expr: relax.Expr) -> relax.Expr:
        """An old expression of the old type."""
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._as_declared(item) for item in expr.fields])
        if not isinstance(expr, relax.Var) or getattr(expr.ty, "dtype", "") != _HALF:
            return expr if constant_value(expr) is not None else self._expr(expr)
        return self._cast(self._expr(expr), _WIDE, _HALF)

    def _cast(self, expr: relax.Expr, source: str, target: str) -> relax.Expr:
        if getattr(expr.ty, "dtype", "") != source:
            return expr
        return self._builder.emit(relax.op.astype(expr, target))


def _is_sum(call: relax.Call) -> bool:
    """Whether it is a sum of float16 products with constant weights."""
    name = getattr(call.op, "name", "")
    if name not in ("relax.matmul", "relax.nn.conv2d") or dtype_of(call.args[0]) != _HALF:
        return False
    weight = constant_value(call.args[1])
    if weight is None or weight.dtype != np.float16:
        return False
    return weight.ndim == 2 if name == "relax.matmul" else int(call.attrs.groups) == 1


def _wide_attributes(attributes: tvm.ir.Attrs | None) -> tvm.ir.Attrs | None:
    """An operator's attributes that name float16 as a result name float32."""
    if attributes is None:
        return None
    named = {
        name: _WIDE for name, value in attribute_fields(attributes).items() if str(value) == _HALF
    }
    return with_fields(attributes, **named) if named else attributes
