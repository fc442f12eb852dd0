"""Converters of PyTorch's adaptive pools, resampling and grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm import relax

from workers.frontends.pytorch.reductions import Arguments, Converter, Emit
from workers.frontends.resampling import CORNERS, Sampling, resample
from workers.graph.graph import static_shape

Reduce = Callable[[relax.Expr, list[int], bool], relax.Expr]


def _adaptive(
    pool: Callable[..., relax.Expr], reduce: Reduce, data_name: str
) -> Callable[..., Any]:
    """A pool whose windows are said by the result's size.

    Equal windows are a pool; others are cut out row by row, then column by column.
    """

    def convert(given: Arguments, emit: Emit) -> relax.Expr:
        data, shape = given[data_name], static_shape(given[data_name]) or ()
        first = len(shape) - len(given["output_size"])
        sizes = [
            shape[first + i] if size is None else int(size)
            for i, size in enumerate(given["output_size"])
        ]
        lengths = shape[first:]
        if all(size == 1 for size in sizes):
            return emit(reduce(data, list(range(first, len(shape))), True))
        exact = not any(length % size for length, size in zip(lengths, sizes, strict=True))
        if exact and len(shape) == 4:
            window = [length // size for length, size in zip(lengths, sizes, strict=True)]
            return emit(pool(data, pool_size=window, strides=window))
        for axis, size in enumerate(sizes, first):
            data = _cut(data, axis, size, reduce, emit)
        return data

    return convert


def _cut(data: relax.Expr, axis: int, size: int, reduce: Reduce, emit: Emit) -> relax.Expr:
    """One axis reduced in windows from floor(i n / size) to ceil((i + 1) n / size)."""
    length = (static_shape(data) or ())[axis]
    if length == size:
        return data
    parts = []
    for number in range(size):
        begin, end = number * length // size, -(-(number + 1) * length // size)
        window = emit(relax.op.strided_slice(data, [axis], [begin], [end]))
        parts.append(emit(reduce(window, [axis], True)))
    return emit(relax.op.concat(parts, axis))


_average = _adaptive(relax.op.nn.avg_pool2d, relax.op.mean, "self")
_largest = _adaptive(relax.op.nn.max_pool2d, relax.op.max, "self")


def _largest_with_places(given: Arguments, emit: Emit) -> list[relax.Expr]:
    """The values alone: a program that reads their places finds no second result."""
    return [_largest(given, emit)]


_METHODS = {"nearest": "nearest_neighbor", "linear": "linear"}
"""What TVM, and with it accelerators, resize images with."""


def _upsample(sampling: Sampling) -> Converter:
    """Resampling to a size, or by factors, which then say where a result lies in the source."""

    def convert(given: Arguments, emit: Emit) -> relax.Expr:
        data, shape = given["input"], static_shape(given["input"]) or ()
        factors = [float(f) for f in given.get("scale_factors") or ()]
        if given["output_size"] is not None:
            sizes = [int(size) for size in given["output_size"]]
            factors = [size / length for size, length in zip(sizes, shape[2:], strict=True)]
        else:
            sizes = [math.floor(n * f) for n, f in zip(shape[2:], factors, strict=True)]
        own = replace(sampling, frame=CORNERS) if given.get("align_corners") else sampling
        if len(shape) == 4:
            return _resampled(data, factors, sizes, own, emit)
        row = emit(relax.op.expand_dims(data, 2))
        result = _resampled(row, [1.0, *factors], [1, *sizes], own, emit)
        return emit(relax.op.squeeze(result, [2]))

    return convert


def _resampled(
    data: relax.Expr, factors: Sequence[float], sizes: Sequence[int], sampling: Sampling, emit: Emit
) -> relax.Expr:
    shape = static_shape(data) or ()
    has_rest = any(n * f != s for n, f, s in zip(shape[2:], factors, sizes, strict=True))
    is_known = sampling.mode in _METHODS and not sampling.antialias
    if not is_known or (has_rest and sampling.frame != CORNERS):
        return resample(data, [1.0, 1.0, *factors], [*shape[:2], *sizes], sampling, emit)
    return emit(
        relax.op.image.resize2d(
            data,
            relax.ShapeExpr(sizes),
            layout="NCHW",
            method=_METHODS[sampling.mode],
            coordinate_transformation_mode=sampling.frame,
            rounding_method=sampling.rounding if sampling.mode == "nearest" else "",
        )
    )


_LINEAR = _upsample(Sampling("linear", "half_pixel"))
_LINEAR_FILTER = _upsample(Sampling("linear", "half_pixel", antialias=True, exclude_outside=True))
_CUBIC = _upsample(Sampling("cubic", "half_pixel"))
_NEAREST = _upsample(Sampling("nearest", "asymmetric", "floor"))
_NEAREST_EXACT = _upsample(Sampling("nearest", "half_pixel", "round_prefer_ceil"))


def _grid_sample(given: Arguments, emit: Emit) -> relax.Expr:
    grid = emit(relax.op.permute_dims(given["grid"], [0, 3, 1, 2]))
    return emit(
        relax.op.image.grid_sample(
            given["input"],
            grid,
            method=("bilinear", "nearest", "bicubic")[int(given["interpolation_mode"])],
            layout="NCHW",
            padding_mode=("zeros", "border", "reflection")[int(given["padding_mode"])],
            align_corners=bool(given["align_corners"]),
        )
    )


CONVERTERS: Mapping[str, Converter] = {
    "_adaptive_avg_pool2d.default": _average,
    "adaptive_avg_pool1d.default": _average,
    "adaptive_avg_pool2d.default": _average,
    "adaptive_avg_pool3d.default": _average,
    "adaptive_max_pool2d.default": _largest_with_places,
    "grid_sampler_2d.default": _grid_sample,
    "_upsample_nearest_exact1d.vec": _NEAREST_EXACT,
    "_upsample_nearest_exact2d.vec": _NEAREST_EXACT,
    "_upsample_bilinear2d_aa.vec": _LINEAR_FILTER,
    "upsample_bicubic2d.vec": _CUBIC,
    "upsample_bilinear2d.vec": _LINEAR,
    "upsample_linear1d.vec": _LINEAR,
    "upsample_nearest1d.vec": _NEAREST,
    "upsample_nearest2d.vec": _NEAREST,
}
"""By the operation's name."""
