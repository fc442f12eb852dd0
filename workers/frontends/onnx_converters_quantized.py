"""Quantized ONNX operations as units of dequantize, float operation and quantize.

An operation on integers (QLinearConv and its kin) becomes a whole unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.onnx_converters_window import conv, pool
from workers.frontends.onnx_operands import (
    Converter,
    Inputs,
    Scope,
    constant,
    operand,
    quantization,
    rank_of,
)
from workers.graph.graph import dtype_of, static_shape
from workers.graph.quantization import Quantization, dequantize, quantize


def _real(inputs: Inputs, at: int, scale: int, zero: int, axis: int = 1) -> relax.Expr:
    """An input as real numbers; its scale and zero point are inputs, too."""
    data = inputs[at]
    return dequantize(data, quantization(inputs, scale, zero, dtype_of(data), axis, rank_of(data)))


def _quantized(result: relax.Expr, inputs: Inputs, scale: int, zero: int) -> relax.Expr:
    """A result in real numbers as integers again."""
    zeros = constant(inputs, zero)
    dtype = zeros.dtype.name if zeros is not None else "uint8"
    return quantize(result, quantization(inputs, scale, zero, dtype, 0, 1))


def _int32_bias(inputs: Inputs, at: int, data: int, weight: int) -> relax.Expr | None:
    """A bias in units of the product of the two scales."""
    bias = operand(inputs, at)
    scales = constant(inputs, weight)
    scale = constant(inputs, data)
    if bias is None or scales is None or scale is None:
        return None
    product = (
        scale.astype(np.float32).reshape(-1) * scales.astype(np.float32).reshape(-1)
    ).tolist()
    axis = rank_of(bias) - 1 if len(product) > 1 else None
    return dequantize(bias, Quantization("int32", tuple(product), (0,) * len(product), axis))


def _qlinear_conv(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del scope
    data, weight = _real(inputs, 0, 1, 2), _real(inputs, 3, 4, 5, axis=0)
    bias = _int32_bias(inputs, 8, 1, 4)
    result = conv(data, weight, bias, static_shape(inputs[0]), static_shape(inputs[3]), attrs)
    return _quantized(result, inputs, 6, 7)


def _qlinear_matmul(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del attrs, scope
    left, right = _real(inputs, 0, 1, 2, axis=-2), _real(inputs, 3, 4, 5, axis=-1)
    return _quantized(relax.op.matmul(left, right), inputs, 6, 7)


def _qgemm(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """com.microsoft: A, its scale and zero point, B, its, C, the result's."""
    del scope
    right_axis = 0 if attrs.get("transB", 0) else 1
    left, right = _real(inputs, 0, 1, 2), _real(inputs, 3, 4, 5, axis=right_axis)
    if attrs.get("transA", 0):
        left = relax.op.permute_dims(left)
    if attrs.get("transB", 0):
        right = relax.op.permute_dims(right)
    if attrs.get("alpha", 1.0) != 1.0:
        raise ValueError("alpha other than 1 is not supported")
    result = relax.op.matmul(left, right)
    bias = _int32_bias(inputs, 6, 1, 4)
    if bias is not None:
        result = relax.op.add(result, bias)
    return result if operand(inputs, 7) is None else _quantized(result, inputs, 7, 8)


def _qlinear_binary(function: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Converter:
    def convert(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
        del attrs, scope
        return _quantized(function(_real(inputs, 0, 1, 2), _real(inputs, 3, 4, 5)), inputs, 6, 7)

    return convert


def _qlinear_unary(
    function: Callable[[relax.Expr, Inputs, dict[str, Any]], relax.Expr],
) -> Converter:
    def convert(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
        del scope
        return _quantized(function(_real(inputs, 0, 1, 2), inputs, attrs), inputs, 3, 4)

    return convert


def _global_average(data: relax.Expr, inputs: Inputs, attrs: dict[str, Any]) -> relax.Expr:
    axes = (
        range(1, rank_of(inputs[0]) - 1)
        if attrs.get("channels_last")
        else range(2, rank_of(inputs[0]))
    )
    return relax.op.mean(data, list(axes), keepdims=True)


def _average_pool(data: relax.Expr, inputs: Inputs, attrs: dict[str, Any]) -> relax.Expr:
    if attrs.get("channels_last"):
        raise ValueError("channels_last is not supported")
    return pool(relax.op.nn.avg_pool2d, data, static_shape(inputs[0]), attrs)


def _softmax(data: relax.Expr, inputs: Inputs, attrs: dict[str, Any]) -> relax.Expr:
    rank = rank_of(inputs[0])
    axis = attrs.get("axis", -1) % rank
    if attrs.get("opset", 13) < 13 and axis != rank - 1:
        raise ValueError("softmax over several axes at once is not supported")
    return relax.op.nn.softmax(data, axis)


def _qlinear_concat(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """com.microsoft: the result's scale and zero point, then three inputs for each part."""
    del scope
    parts = [_real(inputs, i, i + 1, i + 2) for i in range(2, len(inputs), 3)]
    return _quantized(relax.op.concat(parts, attrs["axis"]), inputs, 0, 1)


CONVERTERS: dict[str, Converter] = {
    "QGemm": _qgemm,
    "QLinearAdd": _qlinear_binary(relax.op.add),
    "QLinearAveragePool": _qlinear_unary(_average_pool),
    "QLinearConcat": _qlinear_concat,
    "QLinearConv": _qlinear_conv,
    "QLinearGlobalAveragePool": _qlinear_unary(_global_average),
    "QLinearLeakyRelu": _qlinear_unary(
        lambda x, _, attrs: relax.op.nn.leakyrelu(x, attrs.get("alpha", 0.01))
    ),
    "QLinearMatMul": _qlinear_matmul,
    "QLinearMul": _qlinear_binary(relax.op.multiply),
    "QLinearSigmoid": _qlinear_unary(lambda x, *_: relax.op.sigmoid(x)),
    "QLinearSoftmax": _qlinear_unary(_softmax),
}
"""By ONNX operation name, ONNX Runtime's own operations (com.microsoft) among them."""
