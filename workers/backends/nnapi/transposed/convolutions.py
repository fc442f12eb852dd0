"""A transposed convolution as TRANSPOSE_CONV_2D, or as a plain one.

The plain one (`workers/graph/subpixel.py`) is for levels that have no other, for a border that is
less than nothing, and for more groups than are worth a convolution each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.opset import opset
from workers.backends.nnapi.transposed.images import TO_FIRST, TO_LAST, Emit, Image
from workers.graph.graph import static_shape
from workers.graph.quantization import Quantization, QuantizedConstant
from workers.graph.subpixel import Phases, plain_weights

NAME = "relax.nn.conv2d_transpose"

MAX_GROUPS = 16
"""Most groups that are taken apart into a convolution each."""

Weight = NDArray[Any] | QuantizedConstant
Move = Callable[[relax.Expr, Callable[[relax.Expr], relax.Expr]], relax.Expr]
"""Binds a movement of a value; of a quantized one as a unit of its own."""


def convolved(
    emit: Emit, move: Move, call: relax.Call, data: relax.Expr, weight: Weight, level: int
) -> Image | None:
    """The result of a transposed convolution.

    Args:
        emit: binds an expression of the new graph.
        move: binds what only moves elements of the new graph.
        call: of the old graph, NCHW.
        data: of the new one, NHWC.
        weight: IOHW, in integers where they are quantized.
        level: feature level to be claimed for.

    Returns:
        None where its weights cannot be rearranged: with a zero point a channel.
    """
    array = weight.array if isinstance(weight, QuantizedConstant) else weight
    nothing = _nothing(weight)
    if nothing is None:
        return None
    spread = _spread(array, tuple(int(d) for d in call.attrs.dilation), nothing)
    groups = int(call.attrs.groups)
    is_plain = level < opset()["TRANSPOSE_CONV_2D"].level or groups > MAX_GROUPS
    if is_plain or min(cut_off(call)) < 0:
        return _by_pixels(emit, move, call, data, _like(weight, spread))
    parts = []
    for group in range(groups):
        part = _part(move, data, group, groups)
        own = spread[group * spread.shape[0] // groups : (group + 1) * spread.shape[0] // groups]
        parts.append(_by_operation(emit, call, part, _like(weight, own)))
    value = parts[0] if groups == 1 else emit(relax.op.concat(parts, 3))
    return Image(value, (1, 1), _result(call))


def cut_off(call: relax.Call) -> tuple[int, int, int, int]:
    """Rows and columns cut off at the top, left, bottom and right; output padding is fewer."""
    top, left, bottom, right = (int(p) for p in call.attrs.padding)
    below, beside = (int(p) for p in call.attrs.output_padding)
    return top, left, bottom - below, right - beside


def _result(call: relax.Call) -> tuple[int, int, int, int]:
    n, c, h, w = static_shape(call) or (0, 0, 0, 0)
    return n, h, w, c


def _nothing(weight: Weight) -> int | None:
    """What stands for a weight of 0."""
    if not isinstance(weight, QuantizedConstant):
        return 0
    zeros = set(weight.quantization.zero_points)
    return zeros.pop() if len(zeros) == 1 else None


def _spread(kernel: NDArray[Any], dilation: tuple[int, ...], nothing: int) -> NDArray[Any]:
    """A kernel IOHW with nothing between its elements."""
    sizes = [(n - 1) * step + 1 for n, step in zip(kernel.shape[2:], dilation, strict=True)]
    spread = np.full((*kernel.shape[:2], *sizes), nothing, kernel.dtype)
    spread[:, :, :: dilation[0], :: dilation[1]] = kernel
    return spread


def _like(weight: Weight, array: NDArray[Any]) -> Weight:
    if not isinstance(weight, QuantizedConstant):
        return array
    return QuantizedConstant(array, weight.quantization)


def _expression(weight: Weight) -> relax.Expr:
    if isinstance(weight, QuantizedConstant):
        return weight.expression()
    return relax.const(np.ascontiguousarray(weight), weight.dtype.name)


def _part(move: Move, data: relax.Expr, group: int, groups: int) -> relax.Expr:
    if groups == 1:
        return data
    width = (static_shape(data) or (0,))[3] // groups
    ends = [group * width], [(group + 1) * width], [1]
    return move(data, lambda value: relax.op.strided_slice(value, [3], *ends))


def _by_operation(emit: Emit, call: relax.Call, data: relax.Expr, weight: Weight) -> relax.Expr:
    """Relax's own between two layout changes, as the op file claims it."""
    attrs = call.attrs
    conv = relax.op.nn.conv2d_transpose(
        emit(relax.op.permute_dims(data, TO_FIRST)),
        emit(_expression(weight)),
        strides=[int(s) for s in attrs.strides],
        padding=[int(p) for p in attrs.padding],
        output_padding=[int(p) for p in attrs.output_padding],
        data_layout="NCHW",
        kernel_layout="IOHW",
    )
    return emit(relax.op.permute_dims(emit(conv), TO_LAST))


def _by_pixels(emit: Emit, move: Move, call: relax.Call, data: relax.Expr, weight: Weight) -> Image:
    attrs, groups, result = call.attrs, int(call.attrs.groups), _result(call)
    array = weight.array if isinstance(weight, QuantizedConstant) else weight
    strides, before = ([int(v) for v in values] for values in (attrs.strides, attrs.padding))
    axes = [Phases.of(array.shape[2 + i], strides[i], before[i]) for i in (0, 1)]
    shape = static_shape(data) or ()
    (top, bottom), (left, right) = (axes[i].padding(shape[1 + i], result[1 + i]) for i in (0, 1))
    borders = top, left, bottom, right
    if min(borders) < 0:  # the image's edge is not read
        begins = [max(0, -top), max(0, -left)]
        ends = [shape[1] - max(0, -bottom), shape[2] - max(0, -right)]
        data = move(data, lambda value: relax.op.strided_slice(value, [1, 2], begins, ends, [1, 1]))
    value = emit(
        relax.op.nn.conv2d(
            data,
            emit(_expression(_rearranged(weight, groups, axes))),
            padding=[max(0, border) for border in borders],
            groups=groups,
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
    )
    kinds = axes[0].stride, axes[1].stride
    if groups > 1:
        value = _kinds_first(emit, value, groups, kinds[0] * kinds[1])
    return Image(value, kinds, result)


def _rearranged(weight: Weight, groups: int, axes: list[Phases]) -> Weight:
    if not isinstance(weight, QuantizedConstant):
        return plain_weights(weight, groups, axes)
    numbers = weight.quantization
    plain = plain_weights(weight.array, groups, axes, numbers.zero_points[0])
    if numbers.is_per_tensor:
        return QuantizedConstant(plain, numbers)
    copies = groups * axes[0].stride * axes[1].stride
    scales, zeros = numbers.scales * copies, numbers.zero_points * copies
    return QuantizedConstant(plain, Quantization(numbers.dtype, scales, zeros, 3))


def _kinds_first(emit: Emit, value: relax.Expr, groups: int, kinds: int) -> relax.Expr:
    """Channels (groups, kinds, rest) as (kinds, groups, rest)."""
    shape = static_shape(value) or ()
    pieces = (shape[0] * shape[1] * shape[2], groups, kinds, shape[3] // (groups * kinds))
    apart = emit(relax.op.permute_dims(emit(relax.op.reshape(value, pieces)), (0, 2, 1, 3)))
    return emit(relax.op.reshape(apart, shape))
