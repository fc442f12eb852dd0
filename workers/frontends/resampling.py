"""Resampling along axes, composed: elements picked, or several of them weighted and summed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import dtype_of, static_shape

Positions = NDArray[np.float64]
Emit = Callable[[relax.Expr], relax.Expr]
Tap = tuple[NDArray[np.int64], Positions]
"""For each result element, an element of the source and its weight."""

CORNERS = "align_corners"
FRAMES = (CORNERS, "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
"""ONNX's coordinate_transformation_mode, those that need no region."""

_NEAREST: Mapping[str, Callable[[Positions], Positions]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class Sampling:
    """How coordinates are mapped and neighbours weighted, in ONNX's words.

    Attributes:
        mode: nearest, linear or cubic.
        frame: coordinate_transformation_mode, one of `FRAMES`.
        rounding: nearest_mode.
        antialias: whether the kernel is stretched where the result is smaller.
        exclude_outside: whether what lies outside weighs nothing; else the edge stands for it.
        cubic: cubic_coeff_a.
    """

    mode: str
    frame: str
    rounding: str = "round_prefer_floor"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75


def resample(
    data: relax.Expr,
    factors: Sequence[float],
    sizes: Sequence[int],
    sampling: Sampling,
    emit: Emit,
) -> relax.Expr:
    """A tensor resized axis by axis.

    Args:
        data: of known shape.
        factors: of each axis; they map coordinates.
        sizes: of the result's axes.
        sampling: the rest.
        emit: binds an expression.
    """
    shape = static_shape(data) or ()
    for axis, (length, factor, size) in enumerate(zip(shape, factors, sizes, strict=True)):
        if length == size and factor == 1:
            continue
        positions = _positions(sampling.frame, length, size, factor)
        if sampling.mode == "nearest":
            data = _picked(data, axis, _NEAREST[sampling.rounding](positions), length, emit)
        else:
            data = _weighted(data, axis, _taps(positions, length, factor, sampling), emit)
    return data


def is_nearest_alike(frame: str, rounding: str, length: int, size: int) -> bool:
    """Whether who maps positions by the quotient of the sizes finds the same nearest elements.

    ONNX Runtime divides by a scale, TVM and NNAPI multiply by the other quotient, TVM with a little
    more where it rounds down: near an edge between two elements they may differ.

    Args:
        frame: one of `FRAMES`.
        rounding: nearest_mode.
        length: of the source's axis.
        size: of the result's.
    """
    one, nearest = np.float32, _NEAREST[rounding]
    wanted = nearest(_positions(frame, length, size, size / length))
    result = np.arange(size, dtype=one)
    if frame == CORNERS:
        found = result * (one(length - 1) / one(max(size - 1, 1)))
    elif frame == "asymmetric":
        found = result * (one(length) / one(size))
    else:
        found = (result + one(0.5)) * (one(length) / one(size)) - one(0.5)
    nudge = {"floor": _NUDGE, "ceil": -_NUDGE}.get(rounding, 0.0)
    picks = [nearest((found + one(more)).astype(np.float64)) for more in (0.0, nudge)]
    last = length - 1
    return all(np.array_equal(p.clip(0, last), wanted.clip(0, last)) for p in picks)


_NUDGE = 1e-5
"""What TVM adds before it rounds down (topi.image.resize)."""


def _positions(frame: str, length: int, size: int, factor: float) -> Positions:
    """Where each result element lies in the source.

    In float32, as runtimes compute it: what is half-way between two elements, or on one, is so by
    its roundings.

    Source: ONNX operators, Resize, coordinate_transformation_mode.
    """
    one = np.float32
    result, scale, half = np.arange(size, dtype=one), one(factor), one(0.5)
    if frame == CORNERS:
        found = result * one(length - 1) / one(max(size - 1, 1))
    elif frame == "asymmetric":
        found = result / scale
    elif frame == "pytorch_half_pixel" and size <= 1:
        found = np.zeros(size, one)
    else:
        found = (result + half) / scale - half
        if frame == "half_pixel_symmetric":
            found += one(length / 2 * (1 - size / (factor * length)))
    return found.astype(np.float64)


def _taps(positions: Positions, length: int, factor: float, sampling: Sampling) -> list[Tap]:
    """Neighbours and their weights.

    Source: onnx.reference.ops.op_resize, `linear_coeffs_antialias` and `cubic_coeffs_antialias`.
    """
    radius = 1 if sampling.mode == "linear" else 2
    stretch = min(factor, 1.0) if sampling.antialias else 1.0
    first = math.floor(-radius / stretch) + 1
    lower = np.floor(positions)
    shifts = np.arange(first, 2 - first)
    places = lower + shifts[:, None]
    distances = np.abs(places - positions) * stretch
    weights = np.clip(1 - distances, 0, 1) if radius == 1 else _cubic(distances, sampling.cubic)
    if sampling.exclude_outside:
        weights = np.where((places < 0) | (places >= length), 0, weights)
    weights = weights / weights.sum(axis=0)
    inside = np.clip(places, 0, length - 1).astype(np.int64)
    return [(i, w) for i, w in zip(inside, weights, strict=True) if w.any()]


def _cubic(distances: Positions, a: float) -> Positions:
    """Keys, Cubic convolution interpolation for digital image processing, equation 15."""
    near = ((a + 2) * distances - (a + 3)) * distances**2 + 1
    far = ((distances - 5) * distances + 8) * distances * a - 4 * a
    return np.where(distances <= 1, near, np.where(distances < 2, far, 0))


def _picked(
    data: relax.Expr, axis: int, positions: Positions, length: int, emit: Emit
) -> relax.Expr:
    indices = np.clip(positions, 0, length - 1).astype(np.int64)
    return emit(relax.op.take(data, relax.const(indices, "int64"), axis))


def _weighted(data: relax.Expr, axis: int, taps: Sequence[Tap], emit: Emit) -> relax.Expr:
    along = [1] * len(static_shape(data) or ())
    along[axis] = -1
    total = None
    for indices, weights in taps:
        taken = emit(relax.op.take(data, relax.const(indices, "int64"), axis))
        factor = relax.const(weights.reshape(along).astype(dtype_of(data)), dtype_of(data))
        part = emit(relax.op.multiply(taken, factor))
        total = part if total is None else emit(relax.op.add(total, part))
    return total
