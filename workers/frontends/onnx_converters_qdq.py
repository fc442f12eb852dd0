"""QuantizeLinear and DequantizeLinear: units of eight bits, and everything else as real numbers.

Accelerators compute on eight bits. Sixteen bits, scales that are computed, and weights in blocks
become the arithmetic that ONNX defines them by; a pair around an operation then has no integers
left between, and weights become real constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from tvm import relax

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
from workers.graph.quantization import dequantize, quantize

_UNITS = ("int8", "uint8")
_WIDE = ("int16", "uint16")


def _quantize_linear(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    data, dtype = inputs[0], _target(inputs, attrs)
    if dtype not in (*_UNITS, *_WIDE):
        raise ValueError(f"quantization to {dtype} is not supported, to 8 and 16 bits it is")
    if attrs.get("block_size", 0):
        raise ValueError("activations quantized by blocks are not supported")
    if dtype_of(data) != "float32":
        data = scope.emit(relax.op.astype(data, "float32"))
    if dtype in _UNITS and _is_known(inputs):
        return quantize(data, quantization(inputs, 1, 2, dtype, _axis(attrs), rank_of(data)))
    scale, zero = _spread(inputs, 1, attrs, scope), _spread(inputs, 2, attrs, scope)
    steps = scope.emit(relax.op.round(scope.emit(relax.op.divide(data, scale))))
    if zero is not None:
        steps = scope.emit(relax.op.add(steps, zero))
    bounds = np.iinfo(dtype)
    whole = scope.emit(relax.op.clip(steps, float(bounds.min), float(bounds.max)))
    return scope.integers(whole, dtype)


def _dequantize_linear(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    data, dtype, real = inputs[0], dtype_of(inputs[0]), dtype_of(operand(inputs, 1))
    is_unit = dtype in (*_UNITS, "int32") and _is_known(inputs)
    if is_unit and not attrs.get("block_size", 0):
        numbers = quantization(inputs, 1, 2, dtype, _axis(attrs), rank_of(data))
        value = dequantize(data, numbers)
        return value if real == "float32" else relax.op.astype(scope.emit(value), real)
    array = constant(inputs, 0)
    if array is not None and _is_known(inputs):
        return relax.const(_real_numbers(array, inputs, attrs).astype(real), real)
    if attrs.get("block_size", 0):
        raise ValueError("activations quantized by blocks are not supported")
    if dtype not in (*_UNITS, *_WIDE, "int32"):
        raise ValueError(f"quantization to {dtype} is not supported, to 8 and 16 bits it is")
    scale, zero = _spread(inputs, 1, attrs, scope), _spread(inputs, 2, attrs, scope)
    steps = _steps(data, scope)
    if zero is not None:
        steps = scope.emit(relax.op.subtract(steps, zero))
    value = relax.op.multiply(steps, scale)
    return value if real == "float32" else relax.op.astype(scope.emit(value), real)


def _target(inputs: Inputs, attrs: dict[str, Any]) -> str:
    """The element type of what is quantized."""
    zero = operand(inputs, 2)
    if zero is not None:
        return dtype_of(zero)
    number = attrs.get("output_dtype", 0)
    return helper.tensor_dtype_to_np_dtype(number).name if number else "uint8"


def _is_known(inputs: Inputs) -> bool:
    needed = [1] if operand(inputs, 2) is None else [1, 2]
    return all(constant(inputs, at) is not None for at in needed)


def _axis(attrs: dict[str, Any]) -> int:
    return int(attrs.get("axis", 1))


def _spread(inputs: Inputs, at: int, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Scales or zero points as real numbers that broadcast to the data."""
    expr = operand(inputs, at)
    if expr is None:
        return None
    shape = static_shape(expr)
    if shape is None:
        raise ValueError("scales and zero points need a known shape")
    along = [1] * rank_of(inputs[0])
    if shape not in ((), (1,)):
        along[_axis(attrs)] = -1
    array = constant(inputs, at)
    if array is not None:
        wide = array.astype(np.float32)
        return relax.const(wide.reshape(along if wide.size > 1 else ()), "float32")
    real = expr
    if dtype_of(expr) != "float32":
        real = scope.emit(relax.op.astype(expr, "float32"))
    return scope.emit(relax.op.reshape(real, along))


def _steps(data: relax.Expr, scope: Scope) -> relax.Expr:
    """Integers as real numbers; those that were just rounded to them, as they were before."""
    real = scope.real_of(data)
    if real is not None:
        return real
    return scope.emit(relax.op.astype(data, "float32"))


def _real_numbers(array: NDArray[Any], inputs: Inputs, attrs: dict[str, Any]) -> NDArray[Any]:
    """What constant integers stand for, their scales one, one a channel or one a block."""
    block, axis = int(attrs.get("block_size", 0)), _axis(attrs)
    scales, zeros = constant(inputs, 1), constant(inputs, 2)
    assert scales is not None  # the caller asked

    def along(numbers: NDArray[Any]) -> NDArray[Any]:
        wide = numbers.astype(np.float32)
        if block:
            return np.take(np.repeat(wide, block, axis), np.arange(array.shape[axis]), axis)
        if wide.size == 1:
            return wide.reshape(())
        shape = [1] * array.ndim
        shape[axis] = -1
        return wide.reshape(shape)

    centred = array.astype(np.float32)
    if zeros is not None:
        centred = centred - along(zeros)
    return np.asarray(centred * along(scales))


def _packed_product(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """com.microsoft MatMulNBits: weights of 4 or 8 bits by blocks, as the real ones they stand for.

    Source: ONNX Runtime, docs/ContribOperators.md. B is [N, blocks, bytes], the first of two
    numbers in a byte's lower half; zero points are packed alike, or lie in the middle.
    """
    packed, scales, zeros = (constant(inputs, at) for at in (1, 2, 3))
    bits, block = int(attrs.get("bits", 4)), int(attrs["block_size"])
    rows, depth = int(attrs["N"]), int(attrs["K"])
    if packed is None or scales is None or (operand(inputs, 3) is not None and zeros is None):
        raise ValueError("packed weights, scales and zero points have to be constants")
    if bits not in (4, 8) or operand(inputs, 4) is not None:
        raise ValueError("only weights of 4 and 8 bits in their own order")
    blocks = -(-depth // block)
    whole = _unpacked(packed.reshape(rows * blocks, -1), bits).reshape(rows, blocks, block)
    middle: NDArray[Any] = np.full((rows, blocks), 2.0 ** (bits - 1))
    if zeros is not None and zeros.dtype == np.uint8:
        middle = _unpacked(zeros.reshape(rows, -1), bits)[:, :blocks]
    elif zeros is not None:
        middle = zeros.reshape(rows, blocks)
    centred = whole.astype(np.float32) - middle.astype(np.float32)[:, :, None]
    real = (centred * scales.reshape(rows, blocks, 1).astype(np.float32)).reshape(rows, -1)
    dtype = dtype_of(inputs[0])
    weight = np.ascontiguousarray(real[:, :depth].T).astype(dtype)
    product = relax.op.matmul(inputs[0], relax.const(weight, dtype))
    bias = operand(inputs, 5)
    return product if bias is None else relax.op.add(scope.emit(product), bias)


def _unpacked(data: NDArray[Any], bits: int) -> NDArray[Any]:
    """Numbers of a row of bytes, the lower half first."""
    if bits == 8:
        return data
    return np.stack([data & 15, data >> 4], -1).reshape(len(data), -1)


CONVERTERS: dict[str, Converter] = {
    "DequantizeLinear": _dequantize_linear,
    "MatMulNBits": _packed_product,
    "QuantizeLinear": _quantize_linear,
}
"""By ONNX operation name."""
