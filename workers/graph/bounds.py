"""Between which numbers a value lies, as far as the graph itself says so.

Some composites are right for positive numbers only; that a variance plus an epsilon is positive
follows from how it is computed. And 64-bit integers that are small by their making, positions and
counts, need no 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from tvm import relax

from workers.graph.graph import Graph, constant_value, dtype_of, static_shape

_MOST = 2**20
"""Elements of a constant that are looked through: tables of embeddings are not."""

_DEPTH = 12
"""Calls that are looked back; further, anything is possible."""

Bounds = tuple[float, float]
ANY: Bounds = (-math.inf, math.inf)


def bounds_of(graph: Graph, expr: relax.Expr, depth: int = _DEPTH) -> Bounds:
    """The least and the largest value elements of an expression of the graph may have."""
    array = constant_value(expr)
    if array is not None:
        return (float(array.min()), float(array.max())) if 0 < array.size <= _MOST else ANY
    every = _of_type(dtype_of(expr))
    value = graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
    if isinstance(value, relax.TupleGetItem):
        return _of_item(graph, value, every)
    if not isinstance(value, relax.Call) or depth == 0:
        return every
    name = getattr(value.op, "name", "")
    if name == "relax.multiply" and value.args[0].same_as(value.args[1]):
        found: Bounds = (0.0, math.inf)
    elif name == "relax.concat" and isinstance(value.args[0], relax.Tuple):
        found = _union([bounds_of(graph, item, depth - 1) for item in value.args[0].fields])
    elif (rule := _RULES.get(name)) is not None:
        read = value.args[: _READ.get(name)]
        found = rule(value, *(bounds_of(graph, arg, depth - 1) for arg in read))
    else:
        return every
    # An integer that does not fit wraps around.
    return found if every[0] <= found[0] and found[1] <= every[1] else every


def _of_type(dtype: str) -> Bounds:
    if dtype == "bool":
        return 0.0, 1.0
    if not dtype.startswith(("int", "uint")):
        return ANY
    info = np.iinfo(dtype)
    return float(info.min), float(info.max)


def _of_item(graph: Graph, item: relax.TupleGetItem, every: Bounds) -> Bounds:
    """Positions that TopK gives; of other tuples' items nothing is known."""
    source = item.tuple_value
    call = graph.value_of.get(source) if isinstance(source, relax.Var) else source
    if not isinstance(call, relax.Call) or getattr(call.op, "name", "") != "relax.topk":
        return every
    return _position(call, int(call.attrs.axis)) if item.index == 1 else every


def _union(several: Iterable[Bounds]) -> Bounds:
    lows, highs = zip(*several, strict=True)
    return min(lows), max(highs)


def _position(call: relax.Call, axis: int | None) -> Bounds:
    shape = static_shape(call.args[0])
    if shape is None:
        return ANY
    return 0.0, float((math.prod(shape) if axis is None else shape[axis]) - 1)


def _product(a: Bounds, b: Bounds) -> Bounds:
    ends = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _magnitude(a: Bounds) -> Bounds:
    largest = max(abs(a[0]), abs(a[1]))
    return (0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))), largest


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -500 else 0.0


def _clipped(call: relax.Call, a: Bounds) -> Bounds:
    low, high = (float(getattr(arg, "value", arg)) for arg in call.args[1:3])
    return max(a[0], low), min(max(a[1], low), high)


def _times(call: relax.Call, a: Bounds, axes: Iterable[int] | None) -> Bounds:
    """Of a sum over axes: of any part of the elements, as in running sums."""
    shape = static_shape(call.args[0])
    if shape is None:
        return 0.0 if a[0] >= 0 else -math.inf, 0.0 if a[1] <= 0 else math.inf
    count = max(1, math.prod(shape if axes is None else [shape[axis] for axis in axes]))
    return min(0.0, a[0] * count), max(0.0, a[1] * count)


def _sum(call: relax.Call, a: Bounds) -> Bounds:
    axes = call.attrs.axis
    low, high = _times(call, a, None if axes is None else [int(axis) for axis in axes])
    return (0.0 if a[0] >= 0 else low), (0.0 if a[1] <= 0 else high)


def _running_sum(call: relax.Call, a: Bounds) -> Bounds:
    axis = _axis(call)
    return _times(call, a, None if axis is None else [axis])


def _converted(call: relax.Call, a: Bounds) -> Bounds:
    """Of real numbers without their fractions; of truth values 0 and 1."""
    is_whole = dtype_of(call).startswith(("int", "uint"))
    return (float(math.trunc(a[0])), float(math.trunc(a[1]))) if is_whole and _finite(a) else a


def _finite(a: Bounds) -> bool:
    return math.isfinite(a[0]) and math.isfinite(a[1])


def _remainder(_: relax.Call, a: Bounds, b: Bounds) -> Bounds:
    """Of floor_mod, whose result has the divisor's sign."""
    del a
    return (min(0.0, b[0]), max(0.0, b[1])) if b[0] > 0 or b[1] < 0 else ANY


def _axis(call: relax.Call) -> int | None:
    return None if call.attrs.axis is None else int(call.attrs.axis)


_KEEPING = (
    *("reshape", "permute_dims", "strided_slice", "broadcast_to", "tile", "flip", "squeeze"),
    *("expand_dims", "take", "gather_elements", "gather_nd", "max", "min", "mean"),
)
"""Operations whose results are elements of their first argument, or lie between them."""

_RULES: Mapping[str, Callable[..., Bounds]] = {
    "relax.add": lambda _, a, b: (a[0] + b[0], a[1] + b[1]),
    "relax.subtract": lambda _, a, b: (a[0] - b[1], a[1] - b[0]),
    "relax.multiply": lambda _, a, b: _product(a, b),
    "relax.negative": lambda _, a: (-a[1], -a[0]),
    "relax.abs": lambda _, a: _magnitude(a),
    "relax.nn.relu": lambda _, a: (max(a[0], 0.0), max(a[1], 0.0)),
    "relax.clip": _clipped,
    "relax.sigmoid": lambda _, a: (_logistic(a[0]), _logistic(a[1])),
    "relax.exp": lambda _, a: (0.0, math.exp(min(a[1], 700.0))),
    "relax.sqrt": lambda _, a: (math.sqrt(max(a[0], 0)), math.sqrt(max(a[1], 0))),
    "relax.sum": _sum,
    "relax.cumsum": _running_sum,
    "relax.maximum": lambda _, a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "relax.minimum": lambda _, a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "relax.floor_mod": _remainder,
    "relax.where": lambda _, __, a, b: _union([a, b]),
    "relax.astype": _converted,
    "relax.argmax": lambda call: _position(call, _axis(call)),
    "relax.argmin": lambda call: _position(call, _axis(call)),
    **dict.fromkeys((f"relax.{name}" for name in _KEEPING), lambda _, a: a),
}
"""From the bounds of the tensors a call reads."""

_READ: Mapping[str, int] = {
    "relax.clip": 1,
    "relax.argmax": 0,
    "relax.argmin": 0,
    **dict.fromkeys((f"relax.{name}" for name in _KEEPING), 1),
}
"""How many arguments count, where not all do."""
