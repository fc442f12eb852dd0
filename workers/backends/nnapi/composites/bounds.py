"""Between which numbers a value lies, as far as the graph itself says so.

Some composites are right for positive numbers only; that a variance plus an epsilon is positive
follows from how it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tvm import relax

from workers.graph.graph import Graph, constant_value

_DEPTH = 12
"""Calls that are looked back; further, anything is possible."""

Bounds = tuple[float, float]
ANY: Bounds = (-math.inf, math.inf)


def bounds_of(graph: Graph, expr: relax.Expr, depth: int = _DEPTH) -> Bounds:
    """The least and the largest value elements of an expression of the graph may have."""
    array = constant_value(expr)
    if array is not None:
        return (float(array.min()), float(array.max())) if array.size else ANY
    call = graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
    if not isinstance(call, relax.Call) or depth == 0:
        return ANY
    name = call.op.name
    if name == "relax.multiply" and call.args[0].same_as(call.args[1]):
        return (0.0, math.inf)
    rule = _RULES.get(name)
    if rule is None:
        return ANY
    return rule(call, *(bounds_of(graph, arg, depth - 1) for arg in call.args[: _READ.get(name)]))


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


_RULES: Mapping[str, Callable[..., Bounds]] = {
    "relax.add": lambda _, a, b: (a[0] + b[0], a[1] + b[1]),
    "relax.subtract": lambda _, a, b: (a[0] - b[1], a[1] - b[0]),
    "relax.multiply": lambda _, a, b: _product(a, b),
    "relax.abs": lambda _, a: _magnitude(a),
    "relax.nn.relu": lambda _, a: (max(a[0], 0.0), max(a[1], 0.0)),
    "relax.clip": _clipped,
    "relax.sigmoid": lambda _, a: (_logistic(a[0]), _logistic(a[1])),
    "relax.exp": lambda _, a: (0.0, math.exp(min(a[1], 700.0))),
    "relax.sqrt": lambda _, a: (math.sqrt(max(a[0], 0)), math.sqrt(max(a[1], 0))),
    "relax.sum": lambda _, a: (0.0 if a[0] >= 0 else -math.inf, 0.0 if a[1] <= 0 else math.inf),
    "relax.maximum": lambda _, a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "relax.minimum": lambda _, a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "relax.mean": lambda _, a: a,
    "relax.reshape": lambda _, a: a,
    "relax.permute_dims": lambda _, a: a,
}
"""From the bounds of the tensors a call reads."""

_READ: Mapping[str, int] = {"relax.clip": 1, "relax.reshape": 1}
"""How many arguments are tensors, where not all are."""
