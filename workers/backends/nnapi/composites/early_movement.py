"""Movements of levels 1 and 2: products with ones at the right places.

A tensor is seen as images [before, length, after, 1], and a convolution over its rows picks those
that are wanted; level 1 has neither slices nor transposes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.axes import merged
from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.backends.nnapi.opset import opset
from workers.backends.nnapi.rearrangements import arguments_of
from workers.graph.graph import constant_value, static_shape

MAX_KERNEL = 1024
"""Longest column of weights, most of them zeros, that a movement is worth."""

MAX_PARTS = 16
"""Most slices a transpose is put together from."""


def _reshape(place: Place, call: relax.Call) -> relax.Expr | None:
    """Together with those in front, which may have more axes than NNAPI."""
    target = static_shape(call)
    return None if target is None else place.reshaped(place.new(call.args[0]), target)


def _slice(place: Place, call: relax.Call) -> relax.Expr | None:
    shape, bounds = static_shape(call.args[0]), [_integers(arg) for arg in call.args[1:]]
    if shape is None or None in bounds:
        return None
    axes, begins, ends, *steps = (bound or [] for bound in bounds)
    value: relax.Expr | None = place.new(call.args[0])
    for at, axis in enumerate(axis % len(shape) for axis in axes):
        taken = range(shape[axis])[slice(begins[at], ends[at], steps[0][at] if steps else 1)]
        value = None if value is None else _cut(place, value, axis, taken)
    return value


def _cut(place: Place, data: relax.Expr, axis: int, taken: range) -> relax.Expr | None:
    """A slice along one axis, or what stands for it."""
    shape = static_shape(data) or ()
    if place.level >= opset()["STRIDED_SLICE"].level:
        if taken.step < 0:
            return None
        bounds = [taken.start], [taken.stop], [taken.step]
        return place.emit(relax.op.strided_slice(data, [axis], *bounds))
    if axis == len(shape) - 1:
        return _columns(place, data, taken)
    if taken.step < 0 or not taken:
        return None
    result = (*shape[:axis], len(taken), *shape[axis + 1 :])
    before, length, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    block = len(taken) if taken.step == 1 else 1
    if block > 1 and length % block == taken.start % block == 0:  # one of equal parts
        first = taken.start // block
        length, after, taken = length // block, block * after, range(first, first + 1)
    height = length - (len(taken) - 1) * taken.step
    if height > MAX_KERNEL:
        return None
    kernel = np.zeros((height, 1, 1, 1), np.float32)
    kernel[taken.start] = 1
    image = place.reshaped(data, (before, length, after, 1))
    return place.reshaped(_convolved(place, image, kernel, [taken.step, 1]), result)


def _columns(place: Place, data: relax.Expr, taken: range) -> relax.Expr:
    """Elements of the last axis by a product with columns that have a single one each."""
    shape = static_shape(data) or ()
    columns = np.zeros((shape[-1], len(taken)), np.float32)
    columns[list(taken), range(len(taken))] = 1
    if len(shape) == 4:
        return _convolved(place, data, columns.reshape(1, 1, *columns.shape))
    return place.emit(relax.op.matmul(data, relax.const(columns)))


def _convolved(
    place: Place, image: relax.Expr, kernel: NDArray[np.float32], strides: Sequence[int] = (1, 1)
) -> relax.Expr:
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    conv = relax.op.nn.conv2d(image, relax.const(kernel), strides=list(strides), **layouts)
    return place.emit(conv)


def _permute(place: Place, call: relax.Call) -> relax.Expr | None:
    """Of two axes, or with one more that is kept."""
    shape, target = static_shape(call.args[0]), static_shape(call)
    if shape is None or target is None or _is_at_border(place, call):
        return None
    order = call.attrs.axes
    axes = range(len(shape))[::-1] if order is None else [int(a) % len(shape) for a in order]
    sizes, least = merged(shape, axes)
    if math.prod(sizes) == 0 or _is_anothers(place, call, shape, axes):
        return None
    data = place.reshaped(place.new(call.args[0]), sizes)
    way = {(0,): _same, (1, 0): _turned, (1, 0, 2): _exchanged, (0, 2, 1): _each_turned}.get(least)
    moved = None if way is None else way(place, data, sizes)
    return None if moved is None else place.reshaped(moved, target)


def _is_at_border(place: Place, call: relax.Call) -> bool:
    """Whether it turns an input or gives an output, which the CPU does as well."""
    graph = place.graph
    is_input = any(call.args[0].same_as(var) for var in graph.inputs)
    outputs = (graph.value_of.get(out) for out in graph.outputs if isinstance(out, relax.Var))
    return is_input or any(value is not None and value.same_as(call) for value in outputs)


def _is_anothers(
    place: Place, call: relax.Call, shape: tuple[int, ...], axes: Sequence[int]
) -> bool:
    """Whether it is part of a block operation of level 1, or FULLY_CONNECTED's own."""
    reader = place.only_reader(call)
    if reader is None:
        return False
    if reader.op.name == "relax.matmul":
        return len(shape) == 2 and constant_value(reader.args[0]) is None
    before = place.producer(call.args[0], "relax.reshape")
    source = None if before is None else static_shape(before.args[0])
    result = static_shape(reader)
    if reader.op.name != "relax.reshape" or source is None or result is None:
        return False
    names = ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
    return any(arguments_of(n, source, shape, axes, result) is not None for n in names)


def _same(place: Place, data: relax.Expr, sizes: Sequence[int]) -> relax.Expr:
    del place, sizes
    return data


def _turned(place: Place, data: relax.Expr, sizes: Sequence[int]) -> relax.Expr | None:
    """[a, b] as [b, a]: by a convolution that gives each row a channel, or the unit matrix."""
    a, b = sizes
    if min(a, b) > MAX_KERNEL:
        return None
    if a <= b:
        image = place.reshaped(data, (1, a, b, 1))
        rows = np.eye(a, dtype=np.float32).reshape(a, 1, 1, a)
        return place.reshaped(_convolved(place, image, rows), (b, a))
    unit = relax.const(np.eye(b, dtype=np.float32))
    turned = place.emit(relax.op.permute_dims(data, [1, 0]))  # FULLY_CONNECTED's own
    return place.emit(relax.op.matmul(unit, turned))


def _exchanged(place: Place, data: relax.Expr, sizes: Sequence[int]) -> relax.Expr | None:
    """[a, b, c] as [b, a, c]: slices of the shorter axis, one behind the other."""
    a, b, c = sizes
    if min(a, b) > MAX_PARTS:
        return None
    axis, shape, along = (0, (b, 1, c), 1) if a <= b else (1, (1, a, c), 0)
    parts = [_cut(place, data, axis, range(i, i + 1)) for i in range(min(a, b))]
    if any(part is None for part in parts):
        return None
    shaped = [place.reshaped(part, shape) for part in parts]
    return place.emit(relax.op.concat(shaped, along))


def _each_turned(place: Place, data: relax.Expr, sizes: Sequence[int]) -> relax.Expr | None:
    """[n, a, b] as [n, b, a]."""
    n, a, b = sizes
    if n > MAX_PARTS:
        return _shuffled(place, data, sizes)
    results = []
    for item in range(n):
        part = _cut(place, data, 0, range(item, item + 1))
        flat = None if part is None else place.reshaped(part, (a, b))
        turned = None if flat is None else _turned(place, flat, (a, b))
        if turned is None:
            return None
        results.append(place.reshaped(turned, (1, b, a)))
    return place.emit(relax.op.concat(results, 0))


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
    cut = _cut(place, place.new(call.args[0]), axis, range(begin, end))
    return None if cut is None else place.reshaped(cut, target)


def _shuffled(place: Place, data: relax.Expr, sizes: Sequence[int]) -> relax.Expr | None:
    """The elements of one axis in another order: a product with zeros and ones."""
    n, a, b = sizes
    if a * b > MAX_KERNEL:
        return None
    order = np.arange(a * b).reshape(a, b).transpose().reshape(-1)
    places = np.zeros((a * b, a * b), np.float32)
    places[order, np.arange(a * b)] = 1
    return place.emit(relax.op.matmul(place.reshaped(data, (n, a * b)), relax.const(places)))


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
    apart = place.reshaped(copies, pieces)
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
    "relax.strided_slice": (opset()["STRIDED_SLICE"].level, _slice),
    "relax.permute_dims": (opset()["TRANSPOSE"].level, _permute),
    "relax.reshape": (opset()["TRANSPOSE"].level, _reshape),
    "relax.take": (opset()["GATHER"].level, _take),
    "relax.image.resize2d": (_HALF_PIXEL_LEVEL, _nearest),
}
"""The first level that does without it, and the composite."""
