"""ONNX's LayerNormalization with scales and shifts of fewer axes, and its other outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, operand
from workers.graph.graph import dtype_of, static_shape


def _layer_norm(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    data, shape = inputs[0], static_shape(inputs[0])
    if shape is None:
        return None
    first = int(attrs.get("axis", -1)) % len(shape)
    axes, epsilon = list(range(first, len(shape))), float(attrs.get("epsilon", 1e-5))
    dtype = dtype_of(data)
    gamma = _spread(inputs, 1, shape[first:], dtype, scope)
    beta = _spread(inputs, 2, shape[first:], dtype, scope)
    result = scope.emit(relax.op.nn.layer_norm(data, gamma, beta, axes, epsilon))
    if attrs.get("tvm_custom", {}).get("num_outputs", 1) == 1:
        return result
    mean = scope.emit(relax.op.mean(data, axes, True))
    centred = scope.emit(relax.op.subtract(data, mean))
    squares = scope.emit(relax.op.multiply(centred, centred))
    variance = scope.emit(relax.op.mean(squares, axes, True))
    shifted = scope.emit(relax.op.add(variance, relax.const(epsilon, dtype)))
    return relax.Tuple([result, mean, scope.emit(relax.op.rsqrt(shifted))])


def _spread(
    inputs: Inputs, index: int, shape: tuple[int, ...], dtype: str, scope: Scope
) -> relax.Expr:
    """The scale or shift with an element for each of the normalized ones."""
    expr, array = operand(inputs, index), constant(inputs, index)
    if expr is None:
        return relax.const(np.zeros(shape, dtype))
    if array is not None:
        return relax.const(np.ascontiguousarray(np.broadcast_to(array, shape)), dtype)
    return expr if static_shape(expr) == shape else scope.emit(relax.op.broadcast_to(expr, shape))


CONVERTERS: dict[str, Converter] = {"LayerNormalization": _layer_norm}
"""By ONNX operation name."""
