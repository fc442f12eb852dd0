"""Largest elements, masks and running sums."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Emit, Place
from workers.backends.nnapi.opset import opset
from workers.graph.graph import dtype_of, static_shape
from workers.graph.rewriter import Lazy

MAX_RUNNING_SUM = 512
"""Longest axis that is summed by a product with a matrix of its own size."""


def top_k_item(place: Place, var: relax.Var, item: relax.TupleGetItem) -> relax.Expr | Lazy | None:
    """Values or indices of a relax.topk: largest first, along the last axis, indices of 32 bits.

    Args:
        place: of the item.
        var: that it is bound to.
        item: of the old graph.
    """
    call = place.producer(item.tuple_value, "relax.topk")
    if call is None or static_shape(call.args[0]) is None:
        return None
    shape, count = static_shape(call.args[0]) or (), int(call.attrs.k)
    rank = len(shape)
    axis = int(call.attrs.axis) % rank
    # Swapping two axes is its own inverse.
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    origins = place.graph.origin_of(item.tuple_value)  # an item has none of its own

    def emit(expr: relax.Expr) -> relax.Expr:
        return place.rewriter.emit(expr, origins)

    data = _top_k_data(place, emit, item.tuple_value, order)
    kind = ("values", "indices")[item.index]
    found = emit(relax.op.topk(data, count, -1, kind, largest=True, dtype="int32"))
    if kind == "values" and not call.attrs.largest:
        found = emit(relax.op.negative(found))
    if axis != rank - 1:
        found = _turned(emit, found, order, kind == "indices" and place.counts_exactly(shape[axis]))
    if kind == "values" or str(call.attrs.dtype) == "int32":
        return found
    place.memo[var] = found
    return lambda: place.rewriter.emit(relax.op.astype(found, str(call.attrs.dtype)), frozenset())


def _turned(emit: Emit, value: relax.Expr, order: list[int], as_real: bool) -> relax.Expr:
    """A transpose; of integers, which NNAPI does not transpose, as real numbers on request."""
    if not as_real:
        return emit(relax.op.permute_dims(value, order))
    turned = emit(relax.op.permute_dims(emit(relax.op.astype(value, "float32")), order))
    return emit(relax.op.astype(turned, "int32"))


def _top_k_data(place: Place, emit: Emit, var: relax.Var, order: list[int]) -> relax.Expr:
    if var not in place.memo:
        call = place.graph.value_of[var]
        data = place.new(call.args[0])
        if order != sorted(order):
            data = emit(relax.op.permute_dims(data, order))
        place.memo[var] = data if call.attrs.largest else emit(relax.op.negative(data))
    return place.memo[var]


def _arg(place: Place, call: relax.Call) -> relax.Expr | Lazy:
    """NNAPI's indices are int32; the model's int64 is made of them on the CPU, and only there."""
    found = place.emit(place.new(call))
    short = place.emit(relax.op.astype(found, "int32"))
    var = place.variable_of(call)
    if var is not None:
        place.memo[var] = short
    return lambda: place.rewriter.emit(relax.op.astype(short, "int64"), frozenset())


def _xor(place: Place, call: relax.Call) -> relax.Expr:
    return place.emit(relax.op.not_equal(*(place.new(arg) for arg in call.args)))


def _is_nan(place: Place, call: relax.Call) -> relax.Expr:
    value = place.new(call.args[0])
    return place.emit(relax.op.not_equal(value, value))


def _cast(place: Place, call: relax.Call) -> relax.Expr | None:
    """NNAPI casts numbers to numbers; truth values are chosen and compared."""
    source, target, shape = dtype_of(call.args[0]), dtype_of(call), static_shape(call)
    numbers = ("float32", "int32")
    if source == "int64" and target == "int32" and call.args[0] in place.memo:
        return place.memo[call.args[0]]  # which NNAPI gives as they are asked for
    if shape is None or place.level < opset()["SELECT"].level:
        return None
    if source == "bool" and target in numbers:
        one, zero = (relax.const(np.array(value, target)) for value in (1, 0))
        return place.emit(relax.op.where(place.new(call.args[0]), one, zero))
    if target == "bool" and source in numbers:
        zero = relax.const(np.array(0, source))
        return place.emit(relax.op.not_equal(place.new(call.args[0]), zero))
    return None


def _zeros_like(place: Place, call: relax.Call) -> relax.Expr | None:
    del place
    shape = static_shape(call)
    return None if shape is None else relax.const(np.zeros(shape, dtype_of(call)))


def _triangle(place: Place, call: relax.Call) -> relax.Expr | None:
    shape, offset = static_shape(call), call.args[1]
    if shape is None or dtype_of(call) != "float32":
        return None
    keep = np.triu if call.op.name.endswith("triu") else np.tril
    mask = keep(np.ones(shape[-2:], bool), int(getattr(offset, "value", offset)))
    none = relax.const(np.float32(0))
    return place.emit(relax.op.where(relax.const(mask), place.new(call.args[0]), none))


def _running_sum(place: Place, call: relax.Call) -> relax.Expr | None:
    """A product with a triangle of ones."""
    shape, attrs = static_shape(call), call.attrs
    if not shape or attrs.axis is None or dtype_of(call) != "float32":
        return None
    axis = int(attrs.axis) % len(shape)
    if shape[axis] > MAX_RUNNING_SUM:
        return None
    ones = np.ones((shape[axis], shape[axis]), np.float32)
    triangle = relax.const(np.triu(ones, 1 if attrs.exclusive else 0))
    order = list(range(len(shape)))
    order[axis], order[-1] = order[-1], order[axis]
    data = place.new(call.args[0])
    if axis == len(shape) - 1:
        return place.emit(relax.op.matmul(data, triangle))
    turned = place.emit(relax.op.permute_dims(data, order))
    return place.emit(relax.op.permute_dims(place.emit(relax.op.matmul(turned, triangle)), order))


COMPOSITES: Mapping[str, Composite] = {
    "relax.argmax": _arg,
    "relax.argmin": _arg,
    "relax.astype": _cast,
    "relax.logical_xor": _xor,
    "relax.isnan": _is_nan,
    "relax.zeros_like": _zeros_like,
    "relax.triu": _triangle,
    "relax.tril": _triangle,
    "relax.cumsum": _running_sum,
}
