"""Means and sums of levels 1 and 2: products with a column of equal numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place, real
from workers.backends.nnapi.opset import opset
from workers.graph.graph import static_shape

MAX_KERNEL = 1024
"""Longest column that is a convolution's."""


def _chosen_axes(call: relax.Call) -> tuple[tuple[int, ...], list[int]] | None:
    shape, axes = static_shape(call.args[0]), call.attrs.axis
    if not shape or (axes is not None and not len(axes)):
        return None
    every = range(len(shape)) if axes is None else (int(a) % len(shape) for a in axes)
    return shape, sorted(every)


def _mean(place: Place, call: relax.Call) -> relax.Expr | None:
    return _weighted_sum(place, call, is_mean=True)


def _weighted_sum(place: Place, call: relax.Call, is_mean: bool) -> relax.Expr | None:
    """Over neighbouring axes; of whole images there is AVERAGE_POOL_2D."""
    chosen, target = _chosen_axes(call), static_shape(call)
    if chosen is None or target is None:
        return None
    shape, axes = chosen
    are_neighbours = axes == list(range(axes[0], axes[-1] + 1))
    if not are_neighbours or (is_mean and len(shape) == 4 and axes == [1, 2]):
        return None
    count = math.prod(shape[axis] for axis in axes)
    before, after = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
    column = np.full((count, 1), 1 / max(count, 1) if is_mean else 1, np.float32)
    data = place.new(call.args[0])
    if after == 1:
        flat = place.emit(relax.op.reshape(data, (before, count)))
        summed = place.emit(relax.op.matmul(flat, relax.const(column)))
    elif count <= MAX_KERNEL:
        image = place.emit(relax.op.reshape(data, (before, count, after, 1)))
        kernel = relax.const(column.reshape(count, 1, 1, 1))
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        summed = place.emit(relax.op.nn.conv2d(image, kernel, **layouts))
    else:
        return None
    return place.emit(relax.op.reshape(summed, target))


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


LATER: Mapping[str, tuple[int, Composite]] = {
    "relax.mean": (opset()["MEAN"].level, _mean),
    "relax.sum": (opset()["REDUCE_SUM"].level, _sum),
}
"""The first level that does without it, and the composite."""
