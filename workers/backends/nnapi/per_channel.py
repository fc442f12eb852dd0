"""Quantized models with weights per channel, before NNAPI had those: computed in float, rounded.

TENSOR_QUANT8_SYMM_PER_CHANNEL and QUANTIZE came with feature level 3. Below, a quantized activation
becomes the real number it stands for, scaled, cut, rounded and scaled back by MUL, RELU6 and FLOOR.
The results are the integer model's to a step.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import real
from workers.graph.graph import Binding, Graph, constant_value
from workers.graph.quantization import DEQUANTIZE, QUANTIZE, Quantization, quantization_of
from workers.graph.rewriter import GraphRewriter, Lazy

PER_CHANNEL_LEVEL = 3
"""Of weights per channel, and of QUANTIZE."""


def without_channels(graph: Graph, feature_level: int) -> Graph:
    """The graph in float, where it has what only later levels have."""
    is_early = feature_level < PER_CHANNEL_LEVEL
    if not is_early or not any(_is_per_channel(binding) for binding in graph.bindings):
        return graph
    return GraphRewriter(graph).run(_FloatPass(graph).rule)


def _is_per_channel(binding: Binding) -> bool:
    if binding.call is None or binding.op_name != DEQUANTIZE:
        return False
    numbers = quantization_of(binding.call)
    is_weight = constant_value(binding.call.args[0]) is not None
    return (
        is_weight and numbers is not None and not numbers.is_per_tensor and _has_eight_bits(numbers)
    )


def _has_eight_bits(numbers: Quantization) -> bool:
    return numbers.dtype in ("int8", "uint8")


class _FloatPass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rounded: dict[relax.Var, relax.Expr] = {}

    def rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        """Of `GraphRewriter`."""
        call = binding.call
        if call is None or binding.op_name not in (QUANTIZE, DEQUANTIZE):
            return None
        numbers = quantization_of(call)
        if numbers is not None and call.op.name == DEQUANTIZE:
            return self._dequantized(call, numbers)
        if numbers is None or not numbers.is_per_tensor or not _has_eight_bits(numbers):
            return None
        value = rewriter.new(call.args[0])
        self._rounded[binding.var] = _rounded(rewriter, value, numbers)
        # Who asks for the integers still, a caller, gets them.
        return lambda: rewriter.emit(
            rewriter.new(binding.value), self._graph.origin_of(binding.var)
        )

    def _dequantized(self, call: relax.Call, numbers: Quantization) -> relax.Expr | None:
        array = constant_value(call.args[0])
        if array is not None:
            return relax.const(numbers.dequantize(array))
        source = call.args[0]
        return self._rounded.get(source) if isinstance(source, relax.Var) else None


def _rounded(rewriter: GraphRewriter, value: relax.Expr, numbers: Quantization) -> relax.Expr:
    """What dequantizing the quantized value gives; halves go up."""
    limits = np.iinfo(numbers.dtype)
    low, high = limits.min - numbers.zero_point, limits.max - numbers.zero_point
    scale = float(numbers.scale)
    steps = rewriter.emit(relax.op.multiply(value, real(1 / scale)))
    cut = rewriter.emit(relax.op.clip(steps, low, high))
    whole = rewriter.emit(relax.op.floor(rewriter.emit(relax.op.add(cut, real(0.5)))))
    return rewriter.emit(relax.op.multiply(whole, real(scale)))
