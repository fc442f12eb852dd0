"""Converters of PyTorch's quantization operations, `torch.ops.quantized_decomposed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers the operations
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.quantization import Quantization, dequantize, quantize

Emit = Callable[[relax.Expr], relax.Expr]

_DTYPES = {torch.int8: "int8", torch.uint8: "uint8", torch.int32: "int32"}


def quantize_per_tensor(arguments: list[Any], emit: Emit) -> relax.Expr:
    """input, scale, zero_point, quant_min, quant_max, dtype."""
    data, scale, zero, low, high, dtype = arguments[:6]
    numbers = Quantization(_dtype(dtype), (float(scale),), (int(zero),), None)
    return emit(quantize(_bounded(data, numbers, low, high, emit), numbers))


def quantize_per_channel(arguments: list[Any], emit: Emit) -> relax.Expr:
    """input, scales, zero_points, axis, quant_min, quant_max, dtype."""
    data, scales, zeros, axis, low, high, dtype = arguments[:7]
    numbers = _per_channel(data, scales, zeros, axis, _dtype(dtype))
    if (low, high) != _range(numbers.dtype):
        raise ValueError("a narrowed range of channels is not supported")
    return emit(quantize(data, numbers))


def dequantize_per_tensor(arguments: list[Any], emit: Emit) -> relax.Expr:
    """input, scale, zero_point, quant_min, quant_max, dtype."""
    data, scale, zero = arguments[:3]
    numbers = Quantization(_stored(data), (float(scale),), (int(zero),), None)
    return emit(dequantize(data, numbers))


def dequantize_per_channel(arguments: list[Any], emit: Emit) -> relax.Expr:
    """input, scales, zero_points, axis, quant_min, quant_max, dtype."""
    data, scales, zeros, axis = arguments[:4]
    return emit(dequantize(data, _per_channel(data, scales, zeros, axis, _stored(data))))


CONVERTERS: dict[str, Callable[[list[Any], Emit], relax.Expr]] = {
    "dequantize_per_channel.default": dequantize_per_channel,
    "dequantize_per_tensor.default": dequantize_per_tensor,
    "quantize_per_channel.default": quantize_per_channel,
    "quantize_per_tensor.default": quantize_per_tensor,
}
"""By the operation's name: positional arguments and how to bind an expression."""


def _per_channel(
    data: relax.Expr, scales: relax.Expr, zeros: relax.Expr | None, axis: int, dtype: str
) -> Quantization:
    factors = constant_value(scales)
    offsets = None if zeros is None else constant_value(zeros)
    if factors is None or (zeros is not None and offsets is None):
        raise ValueError("scales and zero points have to be constants")
    if offsets is None:
        offsets = np.zeros(factors.shape, np.int64)
    rank = len(static_shape(data) or ())
    return Quantization(
        dtype, tuple(map(float, factors)), tuple(map(int, offsets)), axis % max(rank, 1)
    )


def _bounded(
    data: relax.Expr, numbers: Quantization, low: int, high: int, emit: Emit
) -> relax.Expr:
    """The data within a range that is narrower than its element type's."""
    if (low, high) == _range(numbers.dtype):
        return data
    ends = [(end - numbers.zero_point) * numbers.scale for end in (low, high)]
    return emit(relax.op.clip(data, *ends))


def _range(dtype: str) -> tuple[int, int]:
    bounds = np.iinfo(dtype)
    return int(bounds.min), int(bounds.max)


def _dtype(dtype: torch.dtype) -> str:
    if dtype not in _DTYPES:
        raise ValueError(f"quantization to {dtype} is not supported, int8 and uint8 are")
    return _DTYPES[dtype]


def _stored(data: relax.Expr) -> str:
    dtype = dtype_of(data)
    if dtype not in _DTYPES.values():
        raise ValueError(f"quantization to {dtype} is not supported, int8 and uint8 are")
    return dtype
