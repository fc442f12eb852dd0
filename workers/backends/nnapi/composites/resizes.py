"""Bilinear resizes whose grids came with level 4: products with a row of weights a pixel.

Of these weights two are not 0, so the sums are those of the resize itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.graph.graph import dtype_of, static_shape
from workers.graph.quantization import DEQUANTIZE

_GRID_LEVEL = 4
"""Of RESIZE_BILINEAR's flags for half pixels and aligned corners."""

MAX_SIDES = 256
"""Most rows and columns of an image, together, that its products are worth."""

_HALF_PIXEL = ("half_pixel", "pytorch_half_pixel")


def _resize(place: Place, call: relax.Call) -> relax.Expr | None:
    """Along the rows, then along the columns: a convolution over a whole axis each."""
    attrs, shape, target = call.attrs, static_shape(call.args[0]), static_shape(call)
    if place.level >= _GRID_LEVEL or attrs.layout != "NHWC" or attrs.method != "linear":
        return None
    if shape is None or target is None or dtype_of(call) != "float32":
        return None
    mode = str(attrs.coordinate_transformation_mode)
    is_quantized = place.producer(call.args[0], DEQUANTIZE) is not None
    if mode not in (*_HALF_PIXEL, "align_corners") or is_quantized:
        return None
    images, height, width, channels = shape
    if height + width > MAX_SIDES:
        return None
    rows, columns = (_weights(shape[axis], target[axis], mode) for axis in (1, 2))
    value = _product(place, place.new(call.args[0]), (images, height, width * channels), rows)
    value = _product(place, value, (images, width, channels * target[1]), columns)
    first = place.emit(relax.op.reshape(value, (images, channels, target[1], target[2])))
    return place.emit(relax.op.permute_dims(first, (0, 2, 3, 1)))


def _weights(size: int, wanted: int, mode: str) -> NDArray[np.float32]:
    """[size, wanted]: what each pixel of an axis gives to each of the result."""
    places = np.arange(wanted)
    if mode in _HALF_PIXEL:
        at = (places + 0.5) * (size / wanted) - 0.5
        if wanted == 1 and mode == "pytorch_half_pixel":
            at = np.zeros(1)
    else:
        at = places * ((size - 1) / max(wanted - 1, 1))
    at = at.clip(0, size - 1)
    below = np.floor(at).astype(np.int64)
    weights = np.zeros((size, wanted))
    np.add.at(weights, (below, places), 1 - (at - below))
    np.add.at(weights, (np.minimum(below + 1, size - 1), places), at - below)
    return weights.astype(np.float32)


def _product(
    place: Place, value: relax.Expr, shape: tuple[int, int, int], weights: NDArray[np.float32]
) -> relax.Expr:
    """[n, size, rest] as [n, 1, rest, wanted]."""
    size, wanted = weights.shape
    return place.emit(
        relax.op.nn.conv2d(
            place.emit(relax.op.reshape(value, (*shape, 1))),
            relax.const(weights.reshape(size, 1, 1, wanted)),
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
    )


COMPOSITES: Mapping[str, Composite] = {"relax.image.resize2d": _resize}
