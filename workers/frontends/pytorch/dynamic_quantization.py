"""Quantization with a scale that is computed from the data, on real numbers.

PyTorch dequantizes before it computes, so the integers are only ever rounded real numbers; as such
every accelerator has them (docs/adr/0027-integers-as-real-numbers.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from workers.graph.graph import dtype_of

Emit = Callable[[relax.Expr], relax.Expr]

_REAL = "float32"


def _real(value: float) -> relax.Expr:
    return relax.const(np.float32(value), _REAL)


def choose_parameters(arguments: list[Any], emit: Emit) -> list[relax.Expr]:
    """input, quant_min, quant_max, eps, dtype; gives scale and zero point, both as real numbers."""
    data, low, high, least = arguments[:4]
    if dtype_of(data) != _REAL:
        raise ValueError("the scale is computed of data that are not float32")
    bottom = emit(relax.op.minimum(emit(relax.op.min(data)), _real(0)))
    top = emit(relax.op.maximum(emit(relax.op.max(data)), _real(0)))
    span = emit(relax.op.subtract(top, bottom))
    scale = emit(relax.op.maximum(emit(relax.op.divide(span, _real(high - low))), _real(least)))
    steps = emit(relax.op.round(emit(relax.op.divide(bottom, scale))))
    zero = emit(relax.op.clip(emit(relax.op.subtract(_real(low), steps)), low, high))
    return [scale, zero]


def quantize_per_tensor(arguments: list[Any], emit: Emit) -> relax.Expr:
    """input, scale, zero_point, quant_min, quant_max, dtype."""
    data, scale, zero, low, high = arguments[:5]
    inverse = emit(relax.op.divide(_real(1), scale))
    steps = emit(relax.op.round(emit(relax.op.multiply(data, inverse))))
    return emit(relax.op.clip(emit(relax.op.add(steps, zero)), low, high))


def dequantize_per_tensor(arguments: list[Any], emit: Emit) -> relax.Expr:
    """input, scale, zero_point, quant_min, quant_max, dtype."""
    data, scale, zero = arguments[:3]
    if dtype_of(data) != _REAL:
        raise ValueError("integers with a computed scale that were not made with it")
    return emit(relax.op.multiply(emit(relax.op.subtract(data, zero)), scale))


CONVERTERS: dict[str, Callable[[list[Any], Emit], Any]] = {
    "choose_qparams.tensor": choose_parameters,
    "dequantize_per_tensor.tensor": dequantize_per_tensor,
    "quantize_per_tensor.tensor": quantize_per_tensor,
}
"""By the operation's name: positional arguments and how to bind an expression."""
