"""Reshapes and transposes of dequantized constants, done on the integers at compile time."""

from __future__ import annotations

from tvm import relax

from workers.graph.graph import Binding, Graph, static_shape
from workers.graph.quantization import QuantizedConstant, quantized_constant
from workers.graph.rewriter import GraphRewriter


def settle_quantized_constants(graph: Graph) -> Graph:
    """Leave no data movement between a quantized weight or bias and the operation that takes it."""
    known: dict[relax.Var, QuantizedConstant] = {}

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        itself = quantized_constant(graph, binding.var)
        if itself is not None:
            known[binding.var] = itself
        call = binding.call
        source = known.get(call.args[0]) if call is not None and call.args else None
        moved = _moved(call, source) if call is not None and source is not None else None
        if moved is None:
            return None
        known[binding.var] = moved
        return rewriter.emit(moved.expression())

    return GraphRewriter(graph).run(rule)


def _moved(call: relax.Call, source: QuantizedConstant) -> QuantizedConstant | None:
    if call.op.name == "relax.reshape":
        shape = static_shape(call)
        return None if shape is None else source.reshaped(shape)
    if call.op.name == "relax.permute_dims":
        rank, axes = source.array.ndim, call.attrs.axes
        order = range(rank)[::-1] if axes is None else [int(a) % rank for a in axes]
        return source.transposed(list(order))
    return None
