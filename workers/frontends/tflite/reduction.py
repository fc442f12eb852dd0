"""Pools, resizes, reductions, orders and normalisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.convolution import SAME, window_padding
from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.graph import dtype_of


def _pool(function: Callable[..., relax.Expr]) -> Converter:
    def convert(op: Emitter) -> None:
        op.give(op.activated(op.emit(_pooled(op, op.real(0), function))))

    return convert


def _pooled(op: Emitter, data: relax.Expr, function: Callable[..., relax.Expr]) -> relax.Expr:
    kernel = (op.option("filterHeight", 1), op.option("filterWidth", 1))
    strides = (op.option("strideH", 1), op.option("strideW", 1))
    size = op.shape_of(data)[1:3]
    # An average counts no padding: count_include_pad is off by default.
    return function(
        data,
        pool_size=kernel,
        strides=strides,
        padding=window_padding(op.option("padding", SAME), size, kernel, strides),
        layout="NHWC",
        out_layout="NHWC",
    )


def _l2_pool(op: Emitter) -> None:
    data = op.real(0)
    squares = op.emit(relax.op.multiply(data, data))
    mean = op.emit(_pooled(op, squares, relax.op.nn.avg_pool2d))
    op.give(op.activated(op.emit(relax.op.sqrt(mean))))


def _resize(method: str) -> Converter:
    def convert(op: Emitter) -> None:
        mode, rounding = "asymmetric", "floor"
        if op.option("alignCorners", False):
            mode, rounding = "align_corners", "round_prefer_ceil"
        elif op.option("halfPixelCenters", False):
            # Nearest takes floor(x + 0.5) of the half-pixel position: a plain floor of the centre.
            mode = "half_pixel"
            rounding = "round_prefer_ceil"
        height, width = op.integers(1)
        op.give(
            relax.op.image.resize2d(
                op.real(0),
                (height, width),
                layout="NHWC",
                method=method,
                coordinate_transformation_mode=mode,
                rounding_method=rounding if method == "nearest_neighbor" else "",
            )
        )

    return convert


def _reduce(function: Callable[..., relax.Expr]) -> Converter:
    def convert(op: Emitter) -> None:
        axes = sorted({axis % max(len(op.shape(0)), 1) for axis in op.integers(1)})
        op.give(function(op.real(0), axes, bool(op.option("keepDims", False))))

    return convert


def _boolean(function: Callable[..., relax.Expr]) -> Converter:
    """All and any: the least and the largest of 0 and 1."""

    def convert(op: Emitter) -> None:
        axes = sorted({axis % max(len(op.shape(0)), 1) for axis in op.integers(1)})
        numbers = op.emit(relax.op.astype(op.raw(0), "int32"))
        result = op.emit(function(numbers, axes, bool(op.option("keepDims", False))))
        op.give_raw(relax.op.astype(result, "bool"))

    return convert


def _index_of(function: Callable[..., relax.Expr]) -> Converter:
    def convert(op: Emitter) -> None:
        (axis,) = op.integers(1)
        found = op.emit(function(op.real(0), axis=axis, keepdims=False))
        wanted = op.output().dtype
        op.give_raw(found if dtype_of(found) == wanted else relax.op.astype(found, wanted))

    return convert


def _topk(op: Emitter) -> None:
    (count,) = op.integers(1)
    both = op.emit(relax.op.topk(op.real(0), k=count, axis=-1, dtype=op.output(1).dtype))
    op.give(op.emit(relax.TupleGetItem(both, 0)), 0)
    op.give_raw(op.emit(relax.TupleGetItem(both, 1)), 1)


def _one_hot(op: Emitter) -> None:
    (depth,) = op.integers(1)
    on, off = (op.needed(position).reshape(-1)[0] for position in (2, 3))
    dtype = op.output().dtype
    hot = relax.op.one_hot(op.raw(0), on.item(), off.item(), depth, int(op.option("axis", -1)))
    op.give_raw(relax.op.astype(op.emit(hot), dtype))


def _cumsum(op: Emitter) -> None:
    (axis,) = op.integers(1)
    value, backwards = op.real(0), bool(op.option("reverse", False))
    if backwards:
        value = op.emit(relax.op.flip(value, axis))
    value = op.emit(relax.op.cumsum(value, axis, exclusive=bool(op.option("exclusive", False))))
    op.give(relax.op.flip(value, axis) if backwards else value)


def _l2_normalization(op: Emitter) -> None:
    data = op.real(0)
    squares = op.emit(relax.op.sum(op.emit(relax.op.multiply(data, data)), [-1], True))
    bounded = op.emit(relax.op.maximum(squares, relax.const(1e-12, dtype_of(data))))
    op.give(op.activated(op.emit(relax.op.divide(data, op.emit(relax.op.sqrt(bounded))))))


def _local_response_normalization(op: Emitter) -> None:
    """Squares of the neighbours in the channels, summed by an average pool along them."""
    data = op.real(0)
    dtype, shape = dtype_of(data), op.shape_of(data)
    radius = int(op.option("radius", 5))
    size = 2 * radius + 1
    squares = op.emit(relax.op.multiply(data, data))
    flat = op.emit(relax.op.reshape(squares, (1, int(np.prod(shape[:-1])), shape[-1], 1)))
    mean = op.emit(
        relax.op.nn.avg_pool2d(
            flat,
            pool_size=(1, size),
            padding=(0, radius, 0, radius),
            count_include_pad=True,
            layout="NHWC",
        )
    )
    mean = op.emit(relax.op.reshape(mean, shape))
    alpha = relax.const(float(op.option("alpha", 1.0)) * size, dtype)
    bias = relax.const(float(op.option("bias", 1.0)), dtype)
    base = op.emit(relax.op.add(op.emit(relax.op.multiply(mean, alpha)), bias))
    power = relax.const(float(op.option("beta", 0.5)), dtype)
    op.give(relax.op.divide(data, op.emit(relax.op.power(base, power))))


CONVERTERS: Mapping[str, Converter] = {
    "ARG_MAX": _index_of(relax.op.argmax),
    "ARG_MIN": _index_of(relax.op.argmin),
    "AVERAGE_POOL_2D": _pool(relax.op.nn.avg_pool2d),
    "CUMSUM": _cumsum,
    "L2_NORMALIZATION": _l2_normalization,
    "L2_POOL_2D": _l2_pool,
    "LOCAL_RESPONSE_NORMALIZATION": _local_response_normalization,
    "MAX_POOL_2D": _pool(relax.op.nn.max_pool2d),
    "MEAN": _reduce(relax.op.mean),
    "ONE_HOT": _one_hot,
    "REDUCE_ALL": _boolean(relax.op.min),
    "REDUCE_ANY": _boolean(relax.op.max),
    "REDUCE_MAX": _reduce(relax.op.max),
    "REDUCE_MIN": _reduce(relax.op.min),
    "REDUCE_PROD": _reduce(relax.op.prod),
    "RESIZE_BILINEAR": _resize("linear"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest_neighbor"),
    "SUM": _reduce(relax.op.sum),
    "TOPK_V2": _topk,
}
"""By TFLite operator name."""
