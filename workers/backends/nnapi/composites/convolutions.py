"""Convolutions a level does not have: wide or in groups, composed from plain ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, static_shape

MAX_PIECES = 64
"""Most groups a convolution is taken apart into: each costs a slice and a convolution."""

MOST_ZEROS = 4
"""A kernel may be made this many times larger by the zeros that stand for its dilation."""


def _convolution(place: Place, call: relax.Call) -> relax.Expr | None:
    kernel, attrs = constant_value(call.args[1]), call.attrs
    is_here = attrs.kernel_layout == "HWIO" and attrs.data_layout == "NHWC"
    if kernel is None or not is_here or static_shape(call.args[0]) is None:
        return None
    groups, dilation = int(attrs.groups), _dilation(call)
    is_grouped = groups > 1 and kernel.shape[2] > 1
    has_groups = place.level >= opset()["GROUPED_CONV_2D"].level
    if dilation != (1, 1) and (is_grouped or not has_groups):
        ways = (_with_zeros, _in_batches, _by_taps)
        found = (way(place, call, kernel) for way in ways)
        return next((wide for wide in found if wide is not None), None)
    if is_grouped and not has_groups:
        return _by_groups(place, call, kernel)
    return None


def _plain(
    place: Place, call: relax.Call, data: relax.Expr, kernel: relax.Expr, **changes: object
) -> relax.Expr:
    """The convolution of a call with other data and weights, without dilation."""
    attrs = call.attrs
    settings: dict[str, object] = {
        "strides": [int(s) for s in attrs.strides],
        "padding": [int(p) for p in attrs.padding],
        "groups": int(attrs.groups),
        "data_layout": attrs.data_layout,
        "kernel_layout": attrs.kernel_layout,
        "out_layout": attrs.out_layout,
    }
    return place.emit(relax.op.nn.conv2d(data, kernel, **(settings | changes)))


def _with_zeros(place: Place, call: relax.Call, kernel: NDArray[np.generic]) -> relax.Expr | None:
    """A dilated convolution where the level has none: with zeros in its kernel."""
    spread = _spread_kernel(kernel, _dilation(call))
    if spread.size > MOST_ZEROS * kernel.size:
        return None
    is_grouped = int(call.attrs.groups) > 1 and kernel.shape[2] > 1
    if is_grouped and place.level < opset()["GROUPED_CONV_2D"].level:
        return _by_groups(place, call, spread)
    return _plain(place, call, place.new(call.args[0]), relax.const(spread))


def _by_groups(place: Place, call: relax.Call, kernel: NDArray[np.generic]) -> relax.Expr | None:
    """A convolution a group, between slices of the channels and their concatenation."""
    data, groups = place.new(call.args[0]), int(call.attrs.groups)
    if groups > MAX_PIECES:
        return None
    width, results = kernel.shape[3] // groups, []
    for group in range(groups):
        begin, end = group * kernel.shape[2], (group + 1) * kernel.shape[2]
        part = place.emit(relax.op.strided_slice(data, [3], [begin], [end], [1]))
        own = np.ascontiguousarray(kernel[..., group * width : (group + 1) * width])
        results.append(_plain(place, call, part, relax.const(own), groups=1))
    return place.emit(relax.op.concat(results, 3))


def _in_batches(place: Place, call: relax.Call, kernel: NDArray[np.generic]) -> relax.Expr | None:
    """Pixels that far apart as images of a batch, a plain convolution of them, and back."""
    shape, target, dilation = static_shape(call.args[0]), static_shape(call), _dilation(call)
    is_plain = {int(s) for s in call.attrs.strides} == {1}
    is_grouped = int(call.attrs.groups) > 1 and kernel.shape[2] > 1
    has_batches = place.level >= opset()["SPACE_TO_BATCH_ND"].level
    if not is_plain or is_grouped or not has_batches or shape is None or target is None:
        return None
    (images, *_, channels), (rows, columns) = shape, dilation
    top, left, bottom, right = (int(p) for p in call.attrs.padding)
    bottom += -(shape[1] + top + bottom) % rows
    right += -(shape[2] + left + right) % columns
    height, width = (shape[1] + top + bottom) // rows, (shape[2] + left + right) // columns
    data = place.new(call.args[0])
    if any((top, left, bottom, right)):
        data = place.emit(relax.op.nn.pad(data, [0, 0, top, bottom, left, right, 0, 0]))
    pieces = (images, height, rows, width, columns, channels)
    batch = (rows * columns * images, height, width, channels)
    data = _moved(place, data, pieces, (2, 4, 0, 1, 3, 5), batch)
    data = _plain(place, call, data, relax.const(kernel), padding=[0, 0, 0, 0])
    _, height, width, channels = static_shape(data) or ()
    pieces = (rows, columns, images, height, width, channels)
    whole = (images, height * rows, width * columns, channels)
    data = _moved(place, data, pieces, (2, 3, 0, 4, 1, 5), whole)
    return place.emit(relax.op.strided_slice(data, [1, 2], [0, 0], target[1:3], [1, 1]))


def _by_taps(place: Place, call: relax.Call, kernel: NDArray[np.generic]) -> relax.Expr | None:
    """The image moved to under each weight, all of them as channels of one 1x1 convolution."""
    target, dilation = static_shape(call), _dilation(call)
    is_plain = {int(s) for s in call.attrs.strides} == {1} and int(call.attrs.groups) == 1
    if not is_plain or target is None:
        return None
    top, left, _, _ = (int(p) for p in call.attrs.padding)
    data, images, weights = place.new(call.args[0]), [], []
    for row in range(kernel.shape[0]):
        by_row = _shifted(place, data, 1, row * dilation[0] - top, target[1])
        for column in range(kernel.shape[1]):
            if by_row is not None:
                moved = _shifted(place, by_row, 2, column * dilation[1] - left, target[2])
                if moved is not None:
                    images.append(moved)
                    weights.append(kernel[row, column])
    if not images:
        return None
    joined = relax.const(np.concatenate(weights)[None, None])
    return _plain(place, call, place.emit(relax.op.concat(images, 3)), joined, padding=[0] * 4)


def _shifted(
    place: Place, data: relax.Expr, axis: int, offset: int, length: int
) -> relax.Expr | None:
    """Rows (axis 1) or columns (2) from an offset on, zeros outside; None where all are outside.

    Each channel's convolution with a single one: level 1 has neither slices nor PAD.
    """
    shape = static_shape(data) or ()
    if offset == 0 and shape[axis] == length:
        return data
    if not -length < offset < shape[axis]:
        return None
    before, first = max(0, -offset), max(0, offset)
    behind = max(0, length + first - shape[axis] - before)
    sides = [1, 1]
    sides[axis - 1] = shape[axis] + before + behind - length + 1
    one = np.zeros((*sides, 1, shape[3]), np.float32)
    one[(first, 0) if axis == 1 else (0, first)] = 1
    padding = [before, 0, behind, 0] if axis == 1 else [0, before, 0, behind]
    settings = {"groups": shape[3], "data_layout": "NHWC", "kernel_layout": "HWIO"}
    return place.emit(relax.op.nn.conv2d(data, relax.const(one), padding=padding, **settings))


def _moved(
    place: Place,
    data: relax.Expr,
    pieces: tuple[int, ...],
    order: tuple[int, ...],
    shape: tuple[int, ...],
) -> relax.Expr:
    apart = place.emit(relax.op.reshape(data, pieces))
    return place.emit(relax.op.reshape(place.emit(relax.op.permute_dims(apart, order)), shape))


def _spread_kernel(kernel: NDArray[np.generic], dilation: tuple[int, int]) -> NDArray[np.generic]:
    """A kernel with zeros between its rows and columns, the first axes."""
    rows, columns = ((n - 1) * step + 1 for n, step in zip(kernel.shape, dilation, strict=False))
    spread = np.zeros((rows, columns, *kernel.shape[2:]), kernel.dtype)
    spread[:: dilation[0], :: dilation[1]] = kernel
    return spread


def _dilation(call: relax.Call) -> tuple[int, int]:
    height, width = (int(d) for d in call.attrs.dilation)
    return height, width


COMPOSITES: Mapping[str, Composite] = {"relax.nn.conv2d": _convolution}
