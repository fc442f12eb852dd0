"""ONNX Resize where TVM's says something else, or nothing.

TVM resizes images to sizes, and maps coordinates by their quotient; ONNX maps by the scale that was
given. Where a size times its scale is no integer the two differ. There, and for cubic and
antialiased kernels, which no accelerator has, the result is composed from what the specification
says: rows and columns picked, or weighted and summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from service.contracts.errors import NnfarmError
from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, text
from workers.frontends.resampling import CORNERS, FRAMES, Sampling, is_nearest_alike, resample
from workers.graph.graph import static_shape

_DEFAULT = "half_pixel"
_TVM_FRAMES = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")
_IMAGE_RANK = 4


def _resize(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    shape, frame = static_shape(inputs[0]), text(attrs, "coordinate_transformation_mode", _DEFAULT)
    wanted = _wanted(inputs, attrs, shape) if shape is not None else None
    if shape is None or wanted is None:
        return None
    factors, sizes = wanted
    mode, has_filter = text(attrs, "mode", "nearest"), bool(attrs.get("antialias"))
    if frame not in FRAMES or mode not in ("nearest", "linear", "cubic"):
        raise NnfarmError(
            "compile.unsupported_operation",
            f"Resize is not supported with mode {mode!r} and coordinates {frame!r}.",
        )
    # Which element is nearest may hang on the scale's last digit, a mean of two does not.
    product = np.multiply if mode == "nearest" else _rounded_product
    leaves_rest = any(product(n, f) != s for n, f, s in zip(shape, factors, sizes, strict=True))
    is_plain = frame == CORNERS or (frame in _TVM_FRAMES and not leaves_rest)
    if is_plain and mode == "nearest":
        rounding = text(attrs, "nearest_mode", "round_prefer_floor")
        is_plain = all(
            is_nearest_alike(frame, rounding, *pair) for pair in zip(shape, sizes, strict=True)
        )
    is_image = len(shape) == _IMAGE_RANK and tuple(sizes[:2]) == shape[:2]
    if is_plain and is_image and mode != "cubic" and not has_filter:
        return _image(inputs[0], sizes, mode, frame, attrs)
    sampling = Sampling(
        mode,
        frame,
        rounding=text(attrs, "nearest_mode", "round_prefer_floor"),
        antialias=has_filter,
        exclude_outside=bool(attrs.get("exclude_outside")),
        cubic=float(attrs.get("cubic_coeff_a", -0.75)),
    )
    return resample(inputs[0], factors, sizes, sampling, scope.emit)


def _rounded_product(size: int, scale: float) -> np.float32:
    """In float32, as ONNX Runtime has it: 5 times 1.4 is 7."""
    return np.float32(size) * np.float32(scale)


def _image(
    data: relax.Expr, sizes: Sequence[int], mode: str, frame: str, attrs: dict[str, Any]
) -> relax.Expr:
    """The one operation that accelerators have."""
    return relax.op.image.resize2d(
        data,
        relax.ShapeExpr([int(size) for size in sizes[2:]]),
        layout="NCHW",
        method="nearest_neighbor" if mode == "nearest" else mode,
        coordinate_transformation_mode=frame,
        rounding_method=text(attrs, "nearest_mode", "round_prefer_floor"),
    )


def _wanted(
    inputs: Inputs, attrs: dict[str, Any], shape: Sequence[int]
) -> tuple[list[float], list[int]] | None:
    """The scale and the size of each axis, by the scales or by the sizes given."""
    scales, sizes = constant(inputs, 2), constant(inputs, 3)
    axes = [int(axis) % len(shape) for axis in attrs.get("axes", range(len(shape)))]
    factors, whole = [1.0] * len(shape), list(shape)
    if scales is not None and scales.size == len(axes):
        for axis, scale in zip(axes, scales.astype(np.float64), strict=True):
            factors[axis], whole[axis] = (
                float(scale),
                int(np.floor(_rounded_product(shape[axis], scale))),
            )
    elif sizes is not None and sizes.size == len(axes):
        goals = [float(size) for size in sizes]
        policy = text(attrs, "keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":  # one scale for all axes: the least or the largest of theirs
            choose = min if policy == "not_larger" else max
            scale = choose(goal / shape[axis] for axis, goal in zip(axes, goals, strict=True))
            goals = [np.floor(scale * shape[axis] + 0.5) for axis in axes]
        for axis, goal in zip(axes, goals, strict=True):
            factors[axis], whole[axis] = goal / shape[axis], int(goal)
    else:
        return None
    return factors, whole


CONVERTERS: dict[str, Converter] = {"Resize": _resize}
"""By ONNX operation name."""
