"""Pools NNAPI does not have: dilated ones, averages that count their padding."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.backends.nnapi.convolution import DILATION_LEVEL
from workers.backends.nnapi.opset import opset
from workers.graph.graph import dtype_of, static_shape

_LAYOUT = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def _ints(values: object) -> list[int]:
    return [int(value) for value in values]  # type: ignore[attr-defined]


def _is_dilated(call: relax.Call) -> bool:
    return any(step != 1 for step in _ints(call.attrs.dilation))


def _reached(call: relax.Call) -> tuple[int, int]:
    """Rows and columns behind the image, or its padding, that the last windows hold."""
    attrs, shape, output = call.attrs, static_shape(call.args[0]) or (), static_shape(call) or ()
    beyond = []
    for axis in (0, 1):
        size = (_ints(attrs.pool_size)[axis] - 1) * _ints(attrs.dilation)[axis] + 1
        end = (output[1 + axis] - 1) * _ints(attrs.strides)[axis] + size
        padding = _ints(attrs.padding)[axis] + _ints(attrs.padding)[2 + axis]
        beyond.append(end - shape[1 + axis] - padding)
    return beyond[0], beyond[1]


def _is_known(call: relax.Call) -> bool:
    is_static = None not in (static_shape(call.args[0]), static_shape(call))
    return is_static and call.attrs.layout == "NHWC"


def _max_pool(place: Place, call: relax.Call) -> relax.Expr | None:
    """A dilated one: the largest of rows so far apart, and of columns."""
    attrs, level = call.attrs, opset()["MAXIMUM"].level
    if not _is_known(call) or not _is_dilated(call) or place.level < level:
        return None
    top, left, bottom, right = _ints(attrs.padding)
    below, beside = (max(0, beyond) for beyond in _reached(call))
    data = place.new(call.args[0])
    if any((top, left, bottom + below, right + beside)):
        least = float(np.finfo(dtype_of(call)).min)
        widths = [0, 0, top, bottom + below, left, right + beside, 0, 0]
        data = place.emit(relax.op.nn.pad(data, widths, "constant", least))
    output = static_shape(call) or ()
    for axis in (0, 1):
        step, spread = _ints(attrs.strides)[axis], _ints(attrs.dilation)[axis]
        last = (output[1 + axis] - 1) * step + 1
        parts = [
            place.emit(relax.op.strided_slice(data, [1 + axis], [first], [first + last], [step]))
            for first in range(0, _ints(attrs.pool_size)[axis] * spread, spread)
        ]
        data = parts[0]
        for part in parts[1:]:
            data = place.emit(relax.op.maximum(data, part))
    return data


def _average_pool(place: Place, call: relax.Call) -> relax.Expr | None:
    """The padding counts: it is put around the image first. Dilated: a convolution with 1/n."""
    attrs = call.attrs
    padding = _ints(attrs.padding)
    counts_padding = bool(attrs.count_include_pad) and any(padding)
    if not _is_known(call) or not (counts_padding or _is_dilated(call)):
        return None
    if _is_dilated(call):
        return _weighted_average(place, call)
    top, left, bottom, right = padding
    # No window begins in the padding behind the image, so no more of it than windows see.
    unseen_rows, unseen_columns = _unseen(call)
    widths = [0, 0, top, bottom - unseen_rows, left, right - unseen_columns, 0, 0]
    data = place.moved(call.args[0], relax.op.nn.pad(place.new(call.args[0]), widths))
    sizes, strides = _ints(attrs.pool_size), _ints(attrs.strides)
    kept = {"layout": attrs.layout, "out_layout": attrs.out_layout}
    # Behind the padding nothing counts.
    ceil_mode = bool(attrs.ceil_mode)
    return place.emit(relax.op.nn.avg_pool2d(data, sizes, strides, ceil_mode=ceil_mode, **kept))


def _unseen(call: relax.Call) -> tuple[int, int]:
    """Rows and columns of the padding behind an NHWC image that no window reaches."""
    attrs, image, result = call.attrs, static_shape(call.args[0]) or (), static_shape(call) or ()
    found = []
    for axis, (size, stride, before, behind) in enumerate(
        zip(
            _ints(attrs.pool_size),
            _ints(attrs.strides),
            _ints(attrs.padding)[:2],
            _ints(attrs.padding)[2:],
            strict=True,
        ),
        start=1,
    ):
        reached = (result[axis] - 1) * stride + size - image[axis] - before
        found.append(max(behind - max(reached, 0), 0))
    return found[0], found[1]


def _weighted_average(place: Place, call: relax.Call) -> relax.Expr | None:
    attrs = call.attrs
    is_uneven = any(_ints(attrs.padding)) and not attrs.count_include_pad
    is_early = place.level < DILATION_LEVEL
    if is_uneven or is_early or max(_reached(call)) > 0 or dtype_of(call) != "float32":
        return None
    sizes, channels = _ints(attrs.pool_size), (static_shape(call) or ())[3]
    weight = np.full((*sizes, 1, channels), 1 / math.prod(sizes), np.float32)
    return place.emit(
        relax.op.nn.conv2d(
            place.new(call.args[0]),
            relax.const(weight),
            strides=_ints(attrs.strides),
            padding=_ints(attrs.padding),
            dilation=_ints(attrs.dilation),
            groups=channels,
            **_LAYOUT,
        )
    )


COMPOSITES: Mapping[str, Composite] = {
    "relax.nn.avg_pool2d": _average_pool,
    "relax.nn.max_pool2d": _max_pool,
}
