"""Dynamically quantized ONNX: integers whose scale the data says, multiplied exactly.

Accelerators have no such integers. Where a float32 holds every sum that can occur, the product is
computed in real numbers, which gives the same integers; elsewhere it stays integer arithmetic, on
the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.frontends.onnx_converters_window import conv
from workers.frontends.onnx_operands import (
    Converter,
    Inputs,
    Scope,
    constant,
    operand,
    rank_of,
)
from workers.graph.graph import static_shape

_LAST_EXACT = 2**24
_LARGEST_STEP = 255
"""Between an integer of 8 bits and its zero point."""

Product = Callable[[relax.Expr, relax.Expr], relax.Expr]


def _dynamic_quantize_linear(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """Scale and zero point from the data's own range, which always has zero in it."""
    del attrs
    data, zero, top = inputs[0], relax.const(0.0, "float32"), relax.const(255.0, "float32")
    low = relax.op.minimum(relax.op.min(data), zero)
    high = relax.op.maximum(relax.op.max(data), zero)
    scale = scope.emit(relax.op.divide(relax.op.subtract(high, low), top))
    offset = relax.op.round(relax.op.clip(relax.op.divide(relax.op.negative(low), scale), 0, 255))
    steps = relax.op.round(relax.op.divide(data, scale))
    offset = scope.emit(offset)
    whole = scope.integers(relax.op.clip(relax.op.add(steps, offset), 0, 255), "uint8")
    return relax.Tuple([whole, scope.emit(scale), scope.integers(offset, "uint8")])


def _matmul_integer(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del attrs
    weight = _weights(inputs, -1)
    is_exact = weight is not None and _fits(np.abs(weight).sum(axis=-2))
    return _product(inputs, weight if is_exact else None, (-2, -1), relax.op.matmul, scope)


def _conv_integer(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    weight = _weights(inputs, 0)
    is_exact = weight is not None and _fits(np.abs(weight).sum(axis=tuple(range(1, weight.ndim))))
    shapes = static_shape(inputs[0]), static_shape(inputs[1])

    def product(data: relax.Expr, filters: relax.Expr) -> relax.Expr:
        return conv(data, filters, None, *shapes, attrs)

    return _product(inputs, weight if is_exact else None, (None, 0), product, scope)


def _product(
    inputs: Inputs,
    weight: NDArray[Any] | None,
    axes: tuple[int | None, int | None],
    product: Product,
    scope: Scope,
) -> relax.Expr:
    """A product of centred integers: in real numbers with weights that fit, else in integers."""
    data = None if weight is None else _real_steps(inputs, scope)
    if weight is None or data is None:
        return product(
            _centred(inputs, 0, 2, axes[0], scope), _centred(inputs, 1, 3, axes[1], scope)
        )
    filters = relax.const(weight.astype(np.float32))
    return scope.integers(product(data, filters), "int32")


def _weights(inputs: Inputs, axis: int) -> NDArray[Any] | None:
    """Constant weights less their zero points."""
    array, zeros = constant(inputs, 1), constant(inputs, 3)
    if array is None or (operand(inputs, 3) is not None and zeros is None):
        return None
    whole = array.astype(np.int64)
    return whole if zeros is None else whole - _along(zeros.astype(np.int64), array.ndim, axis)


def _fits(sums: NDArray[Any]) -> bool:
    return bool(sums.max(initial=0) * _LARGEST_STEP < _LAST_EXACT)


def _real_steps(inputs: Inputs, scope: Scope) -> relax.Expr | None:
    """The data less its zero point as the real numbers they were before they became integers."""
    data = scope.real_of(inputs[0])
    if data is None or operand(inputs, 2) is None:
        return data
    offset = scope.real_of(inputs[2])
    return None if offset is None else scope.emit(relax.op.subtract(data, offset))


def _centred(
    inputs: Inputs, at: int, zero: int, channel_axis: int | None, scope: Scope
) -> relax.Expr:
    """Integers minus their zero point, exactly."""
    data = scope.emit(relax.op.astype(inputs[at], "int32"))
    offset = operand(inputs, zero)
    if offset is None:
        return data
    wide = scope.emit(relax.op.astype(offset, "int32"))
    if channel_axis is not None and math.prod(static_shape(offset) or ()) > 1:
        shape = [1] * rank_of(inputs[at])
        shape[channel_axis] = -1
        wide = scope.emit(relax.op.reshape(wide, shape))
    return scope.emit(relax.op.subtract(data, wide))


def _along(numbers: NDArray[Any], rank: int, axis: int) -> NDArray[Any]:
    """One number, or one for each place of an axis, in a shape that broadcasts."""
    if numbers.size == 1:
        return numbers.reshape(())
    shape = [1] * rank
    shape[axis] = -1
    return numbers.reshape(shape)


CONVERTERS: dict[str, Converter] = {
    "ConvInteger": _conv_integer,
    "DynamicQuantizeLinear": _dynamic_quantize_linear,
    "MatMulInteger": _matmul_integer,
}
"""By ONNX operation name."""
