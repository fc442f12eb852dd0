"""Comparisons of 64-bit integers with a number, on real numbers.

No more of a number is needed than whether it is above, below or equal to the one it is compared
with: cut to one above and one below, it is a real number that every level compares.
"""

from __future__ import annotations

from tvm import relax

from workers.graph.graph import Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter
from workers.pipeline.passes.narrow_values import MOVEMENTS, WIDE

COMPARISONS = tuple(
    f"relax.{name}"
    for name in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
)
_EQUALITIES = {"relax.equal": relax.op.logical_or, "relax.not_equal": relax.op.logical_and}
_LAST_EXACT = 2**24


class Moved:
    """Values of a graph before what only moves them, and moved the same way in its successor.

    Args:
        graph: the old graph.
        rewriter: of the new one.
    """

    def __init__(self, graph: Graph, rewriter: GraphRewriter) -> None:
        self._graph = graph
        self._rewriter = rewriter

    def source(self, expr: relax.Expr) -> tuple[relax.Expr, list[relax.Var]]:
        """What an expression was before it was moved, and the movements, the last one first."""
        movements: list[relax.Var] = []
        while (call := self._graph.producer(expr, *MOVEMENTS)) is not None:
            assert isinstance(expr, relax.Var)  # what has a producer is a variable
            movements.append(expr)
            expr = call.args[0]
        return expr, movements

    def replayed(self, value: relax.Expr, movements: list[relax.Var]) -> relax.Expr:
        """A value of the new graph moved as an old one was."""
        for var in reversed(movements):
            old = self._graph.value_of[var]
            assert isinstance(old, relax.Call)
            call = relax.Call(old.op, [value, *old.args[1:]], old.attrs, old.ty_args)
            value = self._rewriter.emit(call, self._graph.origin_of(var))
        return value


class NarrowComparisons:
    """Comparisons of a graph's 64-bit integers in the new graph.

    Args:
        graph: the old graph.
        rewriter: of the new one.
    """

    def __init__(self, graph: Graph, rewriter: GraphRewriter) -> None:
        self._graph = graph
        self._rewriter = rewriter
        self._moved = Moved(graph, rewriter)
        self._cut: dict[tuple[relax.Expr, int], relax.Expr] = {}

    def of(self, expr: relax.Expr) -> relax.Expr | None:
        """Truth values of the old graph, a comparison with a constant or what moves one.

        Returns:
            None where they come from anything else.
        """
        truths, after = self._moved.source(expr)
        call = self._graph.producer(truths, *COMPARISONS)
        if call is None or dtype_of(call.args[0]) != WIDE:
            return None
        number = constant_value(call.args[1])
        if number is None or number.size != 1 or constant_value(call.args[0]) is not None:
            return None
        pivot = int(number.item())
        if abs(pivot) >= _LAST_EXACT:
            return None
        source, before = self._moved.source(call.args[0])
        origins = self._graph.origin_of(truths) if isinstance(truths, relax.Var) else frozenset()
        with self._rewriter.on_behalf_of(self._rewriter.current_origins | origins):
            product = self._of_product(call, source, pivot, after + before)
            if product is not None:
                return product
            value = self._moved.replayed(self._around(source, pivot), after + before)
            result = relax.Call(call.op, [value, relax.const(float(pivot), "float32")], call.attrs)
            return self._rewriter.emit(result)

    def _of_product(
        self, call: relax.Call, source: relax.Expr, pivot: int, movements: list[relax.Var]
    ) -> relax.Expr | None:
        """A product is nothing where a factor is nothing: masks are multiplied to be combined.

        Of a product that overflows nobody says what it is.
        """
        product = self._graph.producer(source, "relax.multiply")
        join = _EQUALITIES.get(call.op.name)
        if product is None or join is None or pivot != 0 or static_shape(source) is None:
            return None
        assert isinstance(source, relax.Var)
        with self._rewriter.on_behalf_of(
            self._rewriter.current_origins | self._graph.origin_of(source)
        ):
            sides = [self._is_zero(call, factor) for factor in product.args]
            joined = self._rewriter.emit(join(*sides))
        return self._moved.replayed(joined, movements)

    def _is_zero(self, call: relax.Call, factor: relax.Expr) -> relax.Expr:
        """One factor compared with 0 as their product was."""
        source, movements = self._moved.source(factor)
        if constant_value(source) is not None:
            value, zero = self._rewriter.new(factor), relax.const(0, WIDE)
        else:
            value = self._moved.replayed(self._around(source, 0), movements)
            zero = relax.const(0.0, "float32")
        return self._rewriter.emit(relax.Call(call.op, [value, zero], call.attrs))

    def _around(self, expr: relax.Expr, pivot: int) -> relax.Expr:
        """Integers as real numbers, all above the pivot one above it, all below one below."""
        emit, none, key = self._rewriter.emit, frozenset[int](), (expr, pivot)
        if key not in self._cut:
            value = self._rewriter.new(expr)
            value = emit(relax.op.minimum(value, relax.const(pivot + 1, WIDE)), none)
            value = emit(relax.op.maximum(value, relax.const(pivot - 1, WIDE)), none)
            self._cut[key] = emit(relax.op.astype(value, "float32"), none)
        return self._cut[key]
