"""Converters of ours for ONNX operations that TVM's importer turns into opaque code.

Each gives the one Relax operation that says the same, so that it can be offloaded, or None where
the operands are not constant and TVM's own converter has to serve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper
from tvm import relax

from workers.frontends import (
    onnx_converters_attention,
    onnx_converters_integer,
    onnx_converters_movement,
    onnx_converters_normalization,
    onnx_converters_qdq,
    onnx_converters_quantized,
    onnx_converters_recurrent,
    onnx_converters_regions,
    onnx_converters_resize,
    onnx_converters_sequence,
    onnx_converters_window,
)
from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, operand
from workers.graph.graph import dtype_of, static_shape


def _clip(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    del attrs, scope
    bounds = []
    for index, default in ((1, -math.inf), (2, math.inf)):
        if operand(inputs, index) is None:
            bounds.append(default)
            continue
        value = constant(inputs, index)
        if value is None:
            return None
        # ONNX leaves a NaN bound undefined; ONNX Runtime treats it as no bound.
        bounds.append(default if math.isnan(float(value)) else float(value))
    if not dtype_of(inputs[0]).startswith("float"):
        return None
    low, high = min(bounds), bounds[1]  # where they cross, ONNX gives the upper one
    if low == 0.0 and math.isinf(high):
        return relax.op.nn.relu(inputs[0])
    return relax.op.clip(inputs[0], low, high)


def _fold(op: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Converter:
    """Any number of operands, two at a time."""

    def convert(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
        del attrs
        result = inputs[0]
        for other in inputs[1:]:
            result = scope.emit(op(result, other))
        return result

    return convert


def _mean(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    total = _fold(relax.op.add)(inputs, attrs, scope)
    count = relax.const(float(len(inputs)), dtype_of(inputs[0]))
    return relax.op.divide(total, count)


def _power(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Exponents of another element type, which ONNX allows; integers as real numbers."""
    del attrs
    base, exponent = inputs[0], constant(inputs, 1)
    if not dtype_of(base).startswith("float"):
        real = [scope.emit(relax.op.astype(data, "float64")) for data in inputs]
        return relax.op.astype(scope.emit(relax.op.power(*real)), dtype_of(base))
    if exponent is None or exponent.dtype.name == dtype_of(base):
        return None
    return relax.op.power(base, relax.const(exponent.astype(dtype_of(base))))


def _is_infinite(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """One sign only, where the other is not asked for."""
    data = inputs[0]
    up, down = (bool(attrs.get(f"detect_{name}", 1)) for name in ("positive", "negative"))
    if up and down:
        return None
    found = scope.emit(relax.op.isinf(data))
    if not up and not down:
        return relax.op.logical_and(found, relax.const(False, "bool"))
    side = relax.op.greater if up else relax.op.less
    return relax.op.logical_and(found, scope.emit(side(data, relax.const(0.0, dtype_of(data)))))


def _dropout(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Nothing is dropped when a network runs; the mask keeps all."""
    del attrs, scope
    shape = static_shape(inputs[0])
    if shape is None or (operand(inputs, 2) is not None and constant(inputs, 2) != np.False_):
        return None
    return relax.Tuple([inputs[0], relax.const(np.ones(shape, bool), "bool")])


def _extreme_truth(function: Callable[..., relax.Expr]) -> Converter:
    """Max and min of truth values, as of numbers."""

    def convert(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
        if dtype_of(inputs[0]) != "bool":
            return None
        if operand(inputs, 1) is not None and constant(inputs, 1) is None:
            raise ValueError("the axes have to be constants")
        axes, data = constant(inputs, 1), scope.emit(relax.op.astype(inputs[0], "int32"))
        chosen = attrs.get("axes") if axes is None else axes.tolist()
        if not chosen and attrs.get("noop_with_empty_axes", 0):
            return inputs[0]
        found = scope.emit(function(data, chosen or None, bool(attrs.get("keepdims", 1))))
        return relax.op.not_equal(found, relax.const(0, "int32"))

    return convert


def _celu(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    dtype, alpha = dtype_of(inputs[0]), attrs.get("alpha", 1.0)
    below = scope.emit(relax.op.minimum(inputs[0], relax.const(0.0, dtype)))
    curve = scope.emit(relax.op.exp(relax.op.divide(below, relax.const(alpha, dtype))))
    curve = scope.emit(relax.op.subtract(curve, relax.const(1.0, dtype)))
    scaled = scope.emit(relax.op.multiply(curve, relax.const(alpha, dtype)))
    return relax.op.add(scope.emit(relax.op.nn.relu(inputs[0])), scaled)


def _swish(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    data, alpha = inputs[0], attrs.get("alpha", 1.0)
    if alpha != 1.0:
        data = scope.emit(relax.op.multiply(data, relax.const(alpha, dtype_of(data))))
    return relax.op.multiply(inputs[0], scope.emit(relax.op.sigmoid(data)))


def _lp_normalization(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    data, axis = inputs[0], attrs.get("axis", -1)
    if attrs.get("p", 2) == 1:
        norm = relax.op.sum(scope.emit(relax.op.abs(data)), [axis], True)
    else:
        squares = scope.emit(relax.op.multiply(data, data))
        norm = relax.op.sqrt(scope.emit(relax.op.sum(squares, [axis], True)))
    # Zeros stay zeros: the least normal number instead of none divides them.
    least = np.finfo(dtype_of(data)).tiny
    norm = relax.op.maximum(scope.emit(norm), relax.const(least, dtype_of(data)))
    return relax.op.divide(data, scope.emit(norm))


def _cast(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    source, target = inputs[0], helper.tensor_dtype_to_np_dtype(attrs["to"]).name
    if source is None or not isinstance(source.ty, relax.TensorType):
        return None
    real = scope.real_of(source)
    if real is not None and target == "float32":
        return real
    floats = {"float32", "float16"}
    # Out-of-range and NaN to integer are undefined in ONNX; in range all runtimes truncate.
    if (dtype_of(source), target) in {("float32", "int32"), ("int32", "float32")}:
        return relax.op.astype(source, target)
    if dtype_of(source) in floats and target in floats:
        return relax.op.astype(source, target)
    return None


CONVERTERS: dict[str, Converter] = {
    **onnx_converters_attention.CONVERTERS,
    **onnx_converters_integer.CONVERTERS,
    **onnx_converters_movement.CONVERTERS,
    **onnx_converters_normalization.CONVERTERS,
    **onnx_converters_qdq.CONVERTERS,
    **onnx_converters_quantized.CONVERTERS,
    **onnx_converters_recurrent.CONVERTERS,
    **onnx_converters_regions.CONVERTERS,
    **onnx_converters_resize.CONVERTERS,
    **onnx_converters_sequence.CONVERTERS,
    **onnx_converters_window.CONVERTERS,
    "Cast": _cast,
    "Celu": _celu,
    "Clip": _clip,
    "Dropout": _dropout,
    "IsInf": _is_infinite,
    "LpNormalization": _lp_normalization,
    "Max": _fold(relax.op.maximum),
    "Mean": _mean,
    "Min": _fold(relax.op.minimum),
    "Pow": _power,
    "ReduceMax": _extreme_truth(relax.op.max),
    "ReduceMin": _extreme_truth(relax.op.min),
    "Sum": _fold(relax.op.add),
    "Swish": _swish,
}
"""By ONNX operation name."""
