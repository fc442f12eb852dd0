"""Small integers and truth values as real numbers, where NNAPI only has the operation for those.

NNAPI adds, compares and chooses between int32, but reshapes, joins or sums none, and moves no truth
values. Real numbers hold every integer up to 2^24, so positions, counts and masks are moved as such
between a CAST (truth values: SELECT) and another (NOT_EQUAL), docs/adr/0027.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import LAST_EXACT, LAST_EXACT_HALF
from workers.backends.nnapi.opset import opset
from workers.graph.bounds import bounds_of
from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy

_INTEGER, _TRUTH, _REAL = "int32", "bool", "float32"
_INTEGER_ARITHMETIC_LEVEL = opset()["ADD"].types[_INTEGER]

_REALS_ONLY = frozenset(
    f"relax.{name}"
    for name in (
        *("reshape", "permute_dims", "strided_slice", "broadcast_to", "concat", "tile", "flip"),
        *("cumsum", "sum", "max", "min"),
    )
)
_ARITHMETIC = frozenset(f"relax.{n}" for n in ("add", "subtract", "multiply", "negative", "abs"))
_CHOICES = frozenset(f"relax.{n}" for n in ("where", "maximum", "minimum", "take"))
_COMPARISONS = frozenset(
    f"relax.{name}"
    for name in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
)
_POSITIONS = frozenset({"relax.argmax", "relax.argmin"})


def integers_as_reals(graph: Graph, feature_level: int, reduced: bool) -> Graph:
    """The same graph, small integers as real numbers where they have to be.

    Args:
        graph: 64-bit integers made small (`narrow_integers`).
        feature_level: the level to be claimed for; without CAST and SELECT nothing is changed.
        reduced: whether float32 may be computed with the digits of float16.
    """
    has_casts = feature_level >= max(opset()[name].level for name in ("CAST", "SELECT"))
    if not has_casts or not any(_is_small_type(b.var) for b in graph.bindings):
        return graph
    return _Pass(graph, feature_level, LAST_EXACT_HALF if reduced else LAST_EXACT).run()


def _is_small_type(expr: relax.Expr) -> bool:
    return dtype_of(expr) in (_INTEGER, _TRUTH)


class _Pass:
    def __init__(self, graph: Graph, level: int, last: int) -> None:
        self._graph = graph
        self._level = level
        self._last = last
        self._rewriter = GraphRewriter(graph)
        self._reals: dict[relax.Expr, relax.Expr] = {}  # by the old variable
        self._computed: set[relax.Expr] = set()  # of them, those that are not conversions

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, var = binding.call, binding.var
        if call is None or static_shape(var) is None:
            return None
        name = call.op.name
        if name in _COMPARISONS | _POSITIONS and self._reads_reals(call):
            return rewriter.emit(self._on_reals(call))
        is_cast = name == "relax.astype" and call.args[0] in self._computed
        if is_cast and dtype_of(var) == _REAL:
            return self._reals[call.args[0]]
        if is_cast and dtype_of(var) == _INTEGER:
            self._reals[var] = self._reals[call.args[0]]
        elif _is_small_type(var) and self._is_wanted(call) and self._is_exact(var, call):
            self._reals[var] = rewriter.emit(self._on_reals(call))
        else:
            return None
        self._computed.add(var)
        origins = self._graph.origin_of(var)
        return lambda: rewriter.emit(_as_before(self._reals[var], dtype_of(var)), origins)

    def _is_wanted(self, call: relax.Call) -> bool:
        name = call.op.name
        if name in _REALS_ONLY:
            return True
        if name == "relax.take" and dtype_of(call) == _TRUTH:
            return True
        if name in _ARITHMETIC and self._level < _INTEGER_ARITHMETIC_LEVEL:
            return True
        return name in _ARITHMETIC | _CHOICES and self._reads_reals(call)

    def _reads_reals(self, call: relax.Call) -> bool:
        """Whether an operand is there as real numbers, and all others can be."""
        operands = _operands(call)
        return any(arg in self._computed for arg in operands) and all(map(self._fits, operands))

    def _is_exact(self, var: relax.Var, call: relax.Call) -> bool:
        return self._fits(var) and all(self._fits(arg) for arg in _operands(call))

    def _fits(self, expr: relax.Expr) -> bool:
        low, high = bounds_of(self._graph, expr)
        return -self._last <= low and high <= self._last

    def _on_reals(self, call: relax.Call) -> relax.Expr:
        operands = _operands(call)

        def new(arg: relax.Expr) -> relax.Expr:
            is_operand = any(arg.same_as(operand) for operand in operands)
            return self._real(arg) if is_operand else self._rewriter.new(arg)

        args = [
            relax.Tuple([new(item) for item in arg.fields])
            if isinstance(arg, relax.Tuple)
            else new(arg)
            for arg in call.args
        ]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _real(self, expr: relax.Expr) -> relax.Expr:
        array = constant_value(expr)
        if array is not None:
            return relax.const(array.astype(_REAL), _REAL)
        if expr not in self._reals:
            truths = self._truths(expr)
            value = self._rewriter.new(expr if truths is None else truths)
            one, zero = (relax.const(np.float32(n), _REAL) for n in (1, 0))
            is_truth = dtype_of(value) == _TRUTH
            real = relax.op.where(value, one, zero) if is_truth else relax.op.astype(value, _REAL)
            self._reals[expr] = self._rewriter.emit(real)
        return self._reals[expr]

    def _truths(self, expr: relax.Expr) -> relax.Expr | None:
        """Truth values that an expression is the numbers of."""
        value = self._graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
        if not isinstance(value, relax.Call) or getattr(value.op, "name", "") != "relax.astype":
            return None
        return value.args[0] if dtype_of(value.args[0]) == _TRUTH else None


def _operands(call: relax.Call) -> list[relax.Expr]:
    """What a call computes on: not the condition of a choice, nor an index."""
    name = call.op.name
    if name == "relax.where":
        return list(call.args[1:])
    if name in ("relax.take", "relax.reshape", "relax.strided_slice", "relax.broadcast_to"):
        return [call.args[0]]
    if name == "relax.concat":
        return list(call.args[0].fields) if isinstance(call.args[0], relax.Tuple) else []
    return list(call.args)


def _as_before(real: relax.Expr, dtype: str) -> relax.Expr:
    if dtype == _TRUTH:
        return relax.op.not_equal(real, relax.const(np.float32(0), _REAL))
    return relax.op.astype(real, dtype)
