"""ONNX Resize by scales that leave a rest.

TVM resizes to sizes, and maps coordinates by their quotient; ONNX maps by the scale that was given.
Where a size times its scale is no integer the two differ. There the result is composed from what
the specification says: rows and columns picked (nearest), or two of each mixed (linear).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from service.contracts.errors import NnfarmError
from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, text
from workers.graph.graph import dtype_of, static_shape

Positions = NDArray[np.float64]

_DEFAULT, _CORNERS = "half_pixel", "align_corners"

_NEAREST: dict[str, Callable[[Positions], Positions]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _resize(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    shape, frame = static_shape(inputs[0]), text(attrs, "coordinate_transformation_mode", _DEFAULT)
    wanted = _wanted(inputs, shape) if shape is not None else None
    if shape is None or wanted is None:
        return None
    factors, sizes = wanted
    lengths = list(zip(shape, factors, sizes, strict=True))
    leaves_rest = any(n * factor != size for n, factor, size in lengths)
    if frame == _CORNERS or not leaves_rest:
        return None
    mode = text(attrs, "mode", "nearest")
    if mode not in ("nearest", "linear") or frame == "tf_crop_and_resize" or attrs.get("antialias"):
        raise NnfarmError(
            "compile.unsupported_operation",
            f"This Resize is not supported with mode {mode!r} and "
            f"coordinates {frame!r} where a size is no whole multiple.",
        )
    data: relax.Expr = inputs[0]
    for axis, (length, factor, size) in enumerate(lengths):
        if length == size and factor == 1:
            continue
        positions = _positions(frame, size, factor)
        if mode == "nearest":
            rounded = _NEAREST[text(attrs, "nearest_mode", "round_prefer_floor")](positions)
            data = _picked(scope, data, axis, rounded, length)
        else:
            data = _mixed(scope, data, axis, positions, length)
    return data


def _wanted(inputs: Inputs, shape: Sequence[int]) -> tuple[list[float], list[int]] | None:
    """The scale and the size of each axis, by the scales or by the sizes given."""
    scales, sizes = constant(inputs, 2), constant(inputs, 3)
    if scales is not None and scales.size == len(shape):
        factors = [float(s) for s in scales]
        return factors, [int(np.floor(n * s)) for n, s in zip(shape, factors, strict=True)]
    if sizes is not None and sizes.size == len(shape):
        whole = [int(s) for s in sizes]
        return [s / n for n, s in zip(shape, whole, strict=True)], whole
    return None


def _positions(frame: str, size: int, factor: float) -> Positions:
    """Where each result element lies in the source.

    Source: ONNX operators, Resize, coordinate_transformation_mode.
    """
    result = np.arange(size, dtype=np.float64)
    if frame == "asymmetric":
        return result / factor
    if frame == "pytorch_half_pixel" and size <= 1:
        return np.zeros(size)
    return (result + 0.5) / factor - 0.5


def _picked(
    scope: Scope, data: relax.Expr, axis: int, positions: Positions, length: int
) -> relax.Expr:
    indices = np.clip(positions, 0, length - 1).astype(np.int64)
    return scope.emit(relax.op.take(data, relax.const(indices, "int64"), axis))


def _mixed(
    scope: Scope, data: relax.Expr, axis: int, positions: Positions, length: int
) -> relax.Expr:
    inside = np.clip(positions, 0, length - 1)
    lower = np.floor(inside)
    along = [1] * len(static_shape(data) or ())
    along[axis] = -1
    share = (inside - lower).astype(dtype_of(data)).reshape(along)
    near = _picked(scope, data, axis, lower, length)
    far = _picked(scope, data, axis, lower + 1, length)
    parts = [
        scope.emit(relax.op.multiply(value, relax.const(weight, weight.dtype.name)))
        for value, weight in ((near, 1 - share), (far, share))
    ]
    return scope.emit(relax.op.add(*parts))


CONVERTERS: dict[str, Converter] = {"Resize": _resize}
"""By ONNX operation name."""
