"""ONNX operations whose result has the shape that an operand's numbers say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from onnx import numpy_helper
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant
from workers.graph.graph import static_shape

_UNKNOWN = "the shape of its result depends on values; shapes have to be known when it is compiled"


def _number(inputs: Inputs, index: int) -> Any:
    """A bound that is known: a constant, or a size of a tensor."""
    expr, array = inputs[index], constant(inputs, index)
    if array is not None:
        return array.reshape(-1)[0]
    if isinstance(expr, tvm.tirx.IntImm):
        return np.int64(int(expr))
    raise ValueError(_UNKNOWN)


def _range(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del attrs, scope
    start, limit, delta = (_number(inputs, index) for index in range(3))
    # The number of elements first: the last one of np.arange depends on rounding.
    count = max(int(np.ceil((float(limit) - float(start)) / float(delta))), 0)
    return relax.const((np.arange(count) * delta + start).astype(start.dtype), start.dtype.name)


def _constant_of_shape(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    del scope
    shape, sizes = inputs[0], constant(inputs, 0)
    if sizes is None and isinstance(shape, relax.ShapeExpr):
        known = [d for d in shape.values if isinstance(d, int | tvm.tirx.IntImm)]
        sizes = np.array(known) if len(known) == len(shape.values) else None
    if sizes is None:
        raise ValueError(_UNKNOWN)
    given = attrs.get("value")
    value = np.zeros(1, np.float32) if given is None else numpy_helper.to_array(given)
    full = np.full([int(size) for size in sizes], value.reshape(-1)[0])
    return relax.const(full, full.dtype.name)


def _shape(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """A known shape as numbers at once: what exporters compute from it then is constant, too."""
    del scope
    expr = inputs[0]
    if isinstance(expr, relax.ShapeExpr):  # numbers that TVM's importer keeps as a shape
        return relax.const(np.array([len(expr.values)], np.int64), "int64")
    is_tensor = expr is not None and isinstance(expr.ty, relax.TensorType)
    dims = static_shape(expr) if is_tensor else None
    if dims is None:
        return None
    chosen = dims[attrs.get("start", 0) : attrs.get("end", len(dims))]
    return relax.const(np.array(chosen, np.int64), "int64")


def _size(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    del attrs, scope
    dims = static_shape(inputs[0])
    return None if dims is None else relax.const(np.array(math.prod(dims), np.int64), "int64")


def _joined(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Constants as one; TVM's importer makes a shape of integers, which few operations take."""
    del scope
    parts = [constant(inputs, index) for index in range(len(inputs))]
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    whole = np.concatenate(known, axis=int(attrs["axis"]))
    return relax.const(whole, whole.dtype.name)


CONVERTERS: dict[str, Converter] = {
    "Concat": _joined,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
}
"""By ONNX operation name."""
