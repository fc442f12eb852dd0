"""Integers that are moved between quantized operations, as the real numbers they stand for.

Models in QOperator form reshape and transpose 8-bit tensors as they are. Accelerators know the
scale of every such tensor; between dequantize and quantize it is said, and no number changes.
"""

from __future__ import annotations

from tvm import relax

from workers.graph.graph import Binding, Graph, dtype_of, static_shape
from workers.graph.quantization import (
    QUANTIZE,
    Quantization,
    dequantize,
    quantization_of,
    quantize,
)
from workers.graph.rewriter import GraphRewriter

_MOVES = frozenset({"relax.reshape", "relax.permute_dims", "relax.strided_slice"})


def say_scales(graph: Graph) -> Graph:
    """The same graph, movements of quantized tensors between dequantize and quantize."""
    if not any(b.op_name == QUANTIZE for b in graph.bindings):
        return graph
    known: dict[relax.Var, Quantization] = {}

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        call = binding.call
        if call is None:
            return None
        numbers = known.get(call.args[0]) if isinstance(call.args[0], relax.Var) else None
        if call.op.name == QUANTIZE:
            numbers = quantization_of(call)
        elif not _moves(call) or static_shape(call) is None:
            return None
        if numbers is None or numbers.axis is not None or dtype_of(call) not in ("int8", "uint8"):
            return None
        known[binding.var] = numbers
        if call.op.name == QUANTIZE:
            return None
        real = rewriter.emit(dequantize(rewriter.new(call.args[0]), numbers))
        moved = relax.Call(call.op, [real, *call.args[1:]], call.attrs, call.ty_args)
        return rewriter.emit(quantize(rewriter.emit(moved), numbers))

    return GraphRewriter(graph).run(rule)


def _moves(call: relax.Call) -> bool:
    """Whether every element of the result is one of the operand."""
    if call.op.name == "relax.image.resize2d":
        return bool(call.attrs.method == "nearest_neighbor")
    return call.op.name in _MOVES
