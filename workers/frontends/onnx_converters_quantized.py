"""Quantized ONNX operations as units of dequantize, float operation and quantize.

QuantizeLinear and DequantizeLinear become the two Relax operators; an operation on integers
(QLinearConv and its kin) becomes a whole unit. Integer results that ONNX defines exactly
(ConvInteger, MatMulInteger) stay integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from tvm import relax

from workers.frontends.onnx_converters_window import conv, pool
from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, operand
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.quantization import Quantization, dequantize, quantize


def _numbers(
    inputs: Inputs, scale_at: int, zero_at: int, dtype: str, axis: int, rank: int
) -> Quantization:
    scales = constant(inputs, scale_at)
    zeros = constant(inputs, zero_at)
    if scales is None or (operand(inputs, zero_at) is not None and zeros is None):
        raise ValueError("scales and zero points have to be constants")
    if zeros is None:
        zeros = np.zeros(scales.shape, np.int64)
    if scales.ndim > 1:
        raise ValueError("quantization by blocks is not supported")
    flat = tuple(float(s) for s in scales.reshape(-1))
    whole = tuple(int(z) for z in np.broadcast_to(zeros, scales.shape).reshape(-1))
    return Quantization(dtype, flat, whole, axis % max(rank, 1) if len(flat) > 1 else None)


def _rank(expr: relax.Expr) -> int:
    return len(static_shape(expr) or ()) or int(expr.ty.ndim)


def _real(inputs: Inputs, at: int, scale: int, zero: int, axis: int = 1) -> relax.Expr:
    """An input as real numbers; its scale and zero point are inputs, too."""
    data = inputs[at]
    return dequantize(data, _numbers(inputs, scale, zero, dtype_of(data), axis, _rank(data)))


def _quantized(result: relax.Expr, inputs: Inputs, scale: int, zero: int) -> relax.Expr:
    """A result in real numbers as integers again."""
    zeros = constant(inputs, zero)
    dtype = zeros.dtype.name if zeros is not None else "uint8"
    return quantize(result, _numbers(inputs, scale, zero, dtype, 0, 1))


def _quantize_linear(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del scope
    data = inputs[0]
    zeros = constant(inputs, 2)
    dtype = "uint8"
    if zeros is not None:
        dtype = zeros.dtype.name
    elif attrs.get("output_dtype", 0):
        dtype = helper.tensor_dtype_to_np_dtype(attrs["output_dtype"]).name
    numbers = _numbers(inputs, 1, 2, _eight_bits(dtype), attrs.get("axis", 1), _rank(data))
    if dtype_of(data) != "float32":
        data = relax.op.astype(data, "float32")
    return quantize(data, numbers)


def _dequantize_linear(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del scope
    data = inputs[0]
    dtype = dtype_of(data)
    numbers = _numbers(
        inputs, 1, 2, dtype if dtype == "int32" else _eight_bits(dtype), attrs.get("axis", 1),
        _rank(data),
    )  # fmt: skip
    scale = operand(inputs, 1)
    value = dequantize(data, numbers)
    return value if dtype_of(scale) == "float32" else relax.op.astype(value, dtype_of(scale))


def _eight_bits(dtype: str) -> str:
    if dtype not in ("int8", "uint8"):
        raise ValueError(f"quantization to {dtype} is not supported, int8 and uint8 are")
    return dtype


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
    axis = _rank(bias) - 1 if len(product) > 1 else None
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
        range(1, _rank(inputs[0]) - 1) if attrs.get("channels_last") else range(2, _rank(inputs[0]))
    )
    return relax.op.mean(data, list(axes), keepdims=True)


def _average_pool(data: relax.Expr, inputs: Inputs, attrs: dict[str, Any]) -> relax.Expr:
    if attrs.get("channels_last"):
        raise ValueError("channels_last is not supported")
    return pool(relax.op.nn.avg_pool2d, data, static_shape(inputs[0]), attrs)


def _softmax(data: relax.Expr, inputs: Inputs, attrs: dict[str, Any]) -> relax.Expr:
    rank = _rank(inputs[0])
    axis = attrs.get("axis", -1) % rank
    if attrs.get("opset", 13) < 13 and axis != rank - 1:
        raise ValueError("softmax over several axes at once is not supported")
    return relax.op.nn.softmax(data, axis)


def _qlinear_concat(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """com.microsoft: the result's scale and zero point, then three inputs for each part."""
    del scope
    parts = [_real(inputs, i, i + 1, i + 2) for i in range(2, len(inputs), 3)]
    return _quantized(relax.op.concat(parts, attrs["axis"]), inputs, 0, 1)


def _dynamic_quantize_linear(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """Scale and zero point from the data's own range, which always has zero in it."""
    del attrs, scope
    data, zero, top = inputs[0], relax.const(0.0, "float32"), relax.const(255.0, "float32")
    low = relax.op.minimum(relax.op.min(data), zero)
    high = relax.op.maximum(relax.op.max(data), zero)
    scale = relax.op.divide(relax.op.subtract(high, low), top)
    offset = relax.op.round(relax.op.clip(relax.op.divide(relax.op.negative(low), scale), 0, 255))
    steps = relax.op.add(relax.op.round(relax.op.divide(data, scale)), offset)
    whole = relax.op.astype(relax.op.clip(steps, 0, 255), "uint8")
    return relax.Tuple([whole, scale, relax.op.astype(offset, "uint8")])


def _centred(inputs: Inputs, at: int, zero: int, channel_axis: int | None) -> relax.Expr:
    """Integers minus their zero point, exactly."""
    data = relax.op.astype(inputs[at], "int32")
    offset = operand(inputs, zero)
    if offset is None:
        return data
    array: NDArray[Any] | None = constant_value(offset)
    if channel_axis is not None and array is not None and array.size > 1:
        shape = [1] * _rank(inputs[at])
        shape[channel_axis] = -1
        return relax.op.subtract(data, relax.const(array.astype(np.int32).reshape(shape)))
    return relax.op.subtract(data, relax.op.astype(offset, "int32"))


def _matmul_integer(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del attrs, scope
    return relax.op.matmul(_centred(inputs, 0, 2, -2), _centred(inputs, 1, 3, -1))


def _conv_integer(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del scope
    data, weight = _centred(inputs, 0, 2, None), _centred(inputs, 1, 3, 0)
    return conv(data, weight, None, static_shape(inputs[0]), static_shape(inputs[1]), attrs)


CONVERTERS: dict[str, Converter] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "DynamicQuantizeLinear": _dynamic_quantize_linear,
    "MatMulInteger": _matmul_integer,
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
    "QuantizeLinear": _quantize_linear,
}
"""By ONNX operation name, ONNX Runtime's own operations (com.microsoft) among them."""
