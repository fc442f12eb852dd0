"""What the NNAPI backend does to a graph in QDQ form before it claims anything.

Every reader gets dequantize calls of its own, so that a unit "dequantize, operation, quantize" has
no inner value that another unit reads. And all integers become of one signedness: NNAPI has signed
8-bit tensors from feature level 4 only, and no operation takes both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of, free_vars
from workers.graph.quantization import (
    DEQUANTIZE,
    QUANTIZE,
    Quantization,
    dequantize,
    quantization_of,
    quantize,
)
from workers.graph.rewriter import GraphRewriter, Lazy

SIGNED_LEVEL = 4
"""Feature level of TENSOR_QUANT8_ASYMM_SIGNED as an activation."""

_SHIFT = 128


def for_level(graph: Graph, feature_level: int) -> Graph:
    """The graph in the form `claim` reads, with the same results.

    Args:
        graph: normalised, float or in QDQ form.
        feature_level: below 4 every quantized tensor becomes uint8; from 4 only where the model
            has both kinds.
    """
    if not any(b.op_name in (QUANTIZE, DEQUANTIZE) for b in graph.bindings):
        return graph
    kinds = {n.dtype for n in quantizations(graph).values()}
    unsigned = feature_level < SIGNED_LEVEL or "uint8" in kinds
    return _one_reader_each(_UnsignedPass(graph).run() if unsigned else graph)


def quantizations(graph: Graph) -> Mapping[relax.Var, Quantization]:
    """Parameters of every 8-bit variable that all who write and read it agree on."""
    found: dict[relax.Var, Quantization] = {}
    disputed: set[relax.Var] = set()
    for binding in graph.bindings:
        if binding.op_name not in (QUANTIZE, DEQUANTIZE) or binding.call is None:
            continue
        var = binding.var if binding.op_name == QUANTIZE else binding.call.args[0]
        if not isinstance(var, relax.Var) or dtype_of(var) not in ("int8", "uint8"):
            continue
        numbers = quantization_of(binding.call)
        if numbers is None or not numbers.is_per_tensor or found.get(var, numbers) != numbers:
            disputed.add(var)
        else:
            found[var] = numbers
    return {var: numbers for var, numbers in found.items() if var not in disputed}


def _one_reader_each(graph: Graph) -> Graph:
    """Copy each dequantize for every binding that reads it."""
    calls = {b.var: b.call for b in graph.bindings if b.op_name == DEQUANTIZE}
    shared = {var for var in calls if len(_readers(graph, var)) > 1}

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        if binding.is_returned_only:
            return None
        if binding.var in shared:  # the copies are what is read, unless the caller reads it
            origins = graph.origin_of(binding.var)
            return lambda: rewriter.emit(rewriter.new(binding.value), origins)
        copies: dict[relax.Var, relax.Expr] = {}
        for var in dict.fromkeys(free_vars(binding.value)):
            if var in shared:
                copies[var] = rewriter.emit(rewriter.new(calls[var]), graph.origin_of(var))
        if not copies:
            return None
        return rewriter.emit(_with(rewriter, binding.value, copies))

    return GraphRewriter(graph).run(rule)


def _readers(graph: Graph, var: relax.Var) -> list[object]:
    returned: list[object] = ["the caller" for out in graph.outputs if out.same_as(var)]
    return returned + [u for u in graph.users.get(var, ()) if not u.is_returned_only]


def _with(
    rewriter: GraphRewriter, expr: relax.Expr, copies: Mapping[relax.Var, relax.Expr]
) -> relax.Expr:
    """An old expression in the new graph, some of its variables replaced."""
    if isinstance(expr, relax.Var) and expr in copies:
        return copies[expr]
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([_with(rewriter, item, copies) for item in expr.fields])
    if isinstance(expr, relax.Call):
        args = [_with(rewriter, arg, copies) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
    return rewriter.new(expr)


class _UnsignedPass:
    """int8 tensors become uint8, 128 higher, with the zero point as much higher: same numbers."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._numbers = quantizations(graph)
        self._unsigned: dict[relax.Var, relax.Expr] = {}

    def run(self) -> Graph:
        return GraphRewriter(self._graph).run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call = binding.call
        if call is None:
            return None
        if call.op.name == QUANTIZE and self._is_signed(binding.var):
            numbers = _shifted(self._numbers[binding.var])
            value = rewriter.emit(quantize(rewriter.new(call.args[0]), numbers))
            self._unsigned[binding.var] = value
            return lambda: rewriter.emit(_shift(rewriter, value, "int8"), frozenset())
        if call.op.name == DEQUANTIZE:
            return self._dequantize(rewriter, call)
        return None

    def _dequantize(self, rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
        source, numbers = call.args[0], quantization_of(call)
        if numbers is None or numbers.dtype != "int8" or not numbers.is_per_tensor:
            return None
        array = constant_value(source)
        if array is not None:
            moved = relax.const(_as_unsigned(array), "uint8")
            return rewriter.emit(dequantize(moved, _shifted(numbers)))
        if not self._is_signed(source):
            return None
        if source not in self._unsigned:
            self._unsigned[source] = rewriter.emit(
                _shift(rewriter, rewriter.new(source), "uint8"), frozenset()
            )
        return rewriter.emit(dequantize(self._unsigned[source], _shifted(numbers)))

    def _is_signed(self, var: relax.Expr) -> bool:
        return isinstance(var, relax.Var) and var in self._numbers and dtype_of(var) == "int8"


def _shifted(numbers: Quantization) -> Quantization:
    return replace(numbers, dtype="uint8", zero_points=(numbers.zero_point + _SHIFT,))


def _as_unsigned(array: NDArray[Any]) -> NDArray[np.uint8]:
    return (array.astype(np.int16) + _SHIFT).astype(np.uint8)


def _shift(rewriter: GraphRewriter, value: relax.Expr, dtype: str) -> relax.Expr:
    """The tensor in the other signedness, on the CPU: NNAPI has no such operation."""
    wide = rewriter.emit(relax.op.astype(value, "int16"), frozenset())
    step = relax.const(np.int16(_SHIFT if dtype == "uint8" else -_SHIFT), "int16")
    moved = rewriter.emit(relax.op.add(wide, step), frozenset())
    return relax.op.astype(moved, dtype)
