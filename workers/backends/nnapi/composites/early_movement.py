"""Sums and movements of levels 1 and 2: products with ones at the right places."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place, real
from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, static_shape


def _chosen_axes(call: relax.Call) -> tuple[tuple[int, ...], list[int]] | None:
    shape, axes = static_shape(call.args[0]), call.attrs.axis
    if not shape or (axes is not None and not len(axes)):
        return None
    every = range(len(shape)) if axes is None else (int(a) % len(shape) for a in axes)
    return shape, sorted(every)


def _mean(place: Place, call: relax.Call) -> relax.Expr | None:
    """Over the last axes, a product with a column of 1 / n; images have AVERAGE_POOL_2D."""
    return _weighted_sum(place, call, is_mean=True)


def _weighted_sum(place: Place, call: relax.Call, is_mean: bool) -> relax.Expr | None:
    chosen, target = _chosen_axes(call), static_shape(call)
    if chosen is None or target is None:
        return None
    shape, axes = chosen
    if axes != list(range(len(shape) - len(axes), len(shape))):
        return None
    count = math.prod(shape[axis] for axis in axes)
    rows = math.prod(shape) // max(count, 1)
    column = np.full((count, 1), 1 / count if is_mean else 1, np.float32)
    flat = place.emit(relax.op.reshape(place.new(call.args[0]), (rows, count)))
    return place.emit(
        relax.op.reshape(place.emit(relax.op.matmul(flat, relax.const(column))), target)
    )


def _sum(place: Place, call: relax.Call) -> relax.Expr | None:
    """The mean times the count."""
    if place.level < opset()["MEAN"].level:
        return _weighted_sum(place, call, is_mean=False)
    chosen = _chosen_axes(call)
    if chosen is None:
        return None
    shape, axes = chosen
    mean = place.emit(relax.op.mean(place.new(call.args[0]), axes, bool(call.attrs.keepdims)))
    return place.emit(relax.op.multiply(mean, real(math.prod(shape[a] for a in axes))))


def _slice(place: Place, call: relax.Call) -> relax.Expr | None:
    """Along the last axis, a product with columns that have a single one each."""
    shape, bounds = static_shape(call.args[0]), [_integers(arg) for arg in call.args[1:]]
    if shape is None or None in bounds or bounds[0] != [len(shape) - 1]:
        return None
    _, begins, ends, *steps = (bound or [] for bound in bounds)
    taken = range(shape[-1])[slice(begins[0], ends[0], steps[0][0] if steps else 1)]
    columns = np.zeros((shape[-1], len(taken)), np.float32)
    columns[list(taken), range(len(taken))] = 1
    data = place.new(call.args[0])
    if len(shape) != 4:
        return place.emit(relax.op.matmul(data, relax.const(columns)))
    kernel = relax.const(columns.reshape(1, 1, *columns.shape))
    return place.emit(relax.op.nn.conv2d(data, kernel, data_layout="NHWC", kernel_layout="HWIO"))


def _take(place: Place, call: relax.Call) -> relax.Expr | None:
    """Neighbours, or one element, as a slice."""
    shape, target = static_shape(call.args[0]), static_shape(call)
    indices = constant_value(call.args[1])
    if shape is None or target is None or indices is None or not indices.size:
        return None
    axis = int(call.attrs.axis or 0) % len(shape)
    begin, end = int(indices.flat[0]), int(indices.flat[0]) + indices.size
    begin, end = (begin + shape[axis], end + shape[axis]) if begin < 0 else (begin, end)
    neighbours = np.arange(begin, end)
    if end > shape[axis] or (indices.reshape(-1) % shape[axis] != neighbours).any():
        return None
    cut = relax.op.strided_slice(place.new(call.args[0]), [axis], [begin], [end], [1])
    return place.emit(relax.op.reshape(place.emit(cut), target))


def _integers(expr: relax.Expr) -> list[int] | None:
    values = [getattr(field, "value", None) for field in getattr(expr, "fields", ())]
    return None if None in values else [int(v) for v in values if v is not None]


def _nearest(place: Place, call: relax.Call) -> relax.Expr | None:
    """By a whole number, every pixel that many times among the channels, then DEPTH_TO_SPACE."""
    attrs, shape, target = call.attrs, static_shape(call.args[0]), static_shape(call)
    is_plain = attrs.layout == "NHWC" and attrs.method == "nearest_neighbor"
    if not is_plain or attrs.coordinate_transformation_mode == "align_corners":
        return None
    has_plain = place.level >= opset()["RESIZE_NEAREST_NEIGHBOR"].level
    if has_plain and attrs.coordinate_transformation_mode == "asymmetric":
        return None
    if shape is None or target is None or target[1] % shape[1]:
        return None
    images, height, width, channels = shape
    factor = target[1] // height
    if factor < 2 or target[2] != factor * width or not _repeats(call, factor):
        return None
    copies = place.emit(relax.op.concat([place.new(call.args[0])] * factor**2, 3))
    pieces = (images, height, width, factor, factor, channels)
    apart = place.emit(relax.op.reshape(copies, pieces))
    return place.emit(
        relax.op.reshape(place.emit(relax.op.permute_dims(apart, (0, 1, 3, 2, 4, 5))), target)
    )


def _repeats(call: relax.Call, factor: int) -> bool:
    """Whether rounding picks each pixel `factor` times."""
    mode, rounding = str(call.attrs.coordinate_transformation_mode), str(call.attrs.rounding_method)
    if mode == "asymmetric":
        return rounding == "floor"
    # (i + 1/2) / factor - 1/2 lies within half a pixel of i // factor, on it for odd factors.
    return mode in ("half_pixel", "pytorch_half_pixel") and (
        rounding == "round_prefer_floor" or factor % 2 == 1
    )


_HALF_PIXEL_LEVEL = 4
"""Of RESIZE_NEAREST_NEIGHBOR's flags; the operation itself is of level 3."""

LATER: Mapping[str, tuple[int, Composite]] = {
    "relax.mean": (opset()["MEAN"].level, _mean),
    "relax.sum": (opset()["REDUCE_SUM"].level, _sum),
    "relax.strided_slice": (opset()["STRIDED_SLICE"].level, _slice),
    "relax.take": (opset()["GATHER"].level, _take),
    "relax.image.resize2d": (_HALF_PIXEL_LEVEL, _nearest),
}
"""The first level that does without it, and the composite."""
