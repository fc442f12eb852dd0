"""Indices of 64 bits as those of 32, and casts moved in front of what only moves data.

NNAPI has no int64. What an index may be is bounded by the axis it counts, so 32 bits hold it (an
index outside the axis is an error of the model's input, ONNX Gather). The one cast that is left
stands at the border; moved up to the model's input, it takes no reshape to the CPU with it.

Nor is more of a number needed than that it is above, below or equal to the one it is compared with:
cut to one above and one below, it is a real number that every level compares.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of
from workers.graph.rewriter import GraphRewriter

_WIDE, _NARROW = "int64", "int32"
_COMPARISONS = tuple(
    f"relax.{name}"
    for name in ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
)
_LAST_EXACT = 2**24
_MOVEMENTS = ("relax.reshape", "relax.permute_dims", "relax.strided_slice", "relax.broadcast_to")


def narrow_integers(graph: Graph) -> Graph:
    """The same graph with 32 bits where they are known to do."""
    if not any(dtype_of(var) == _WIDE for var in (*graph.inputs, *graph.value_of)):
        return graph
    return _Pass(graph).run()


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rewriter = GraphRewriter(graph)
        self._casts: dict[tuple[relax.Expr, str], relax.Expr] = {}

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        call = binding.call
        if call is None:
            return None
        if call.op.name == "relax.take":
            index = self._index(call.args[1])
            if index is None:
                return None
            args = [rewriter.new(call.args[0]), index]
            return rewriter.emit(relax.Call(call.op, args, call.attrs, call.ty_args))
        if dtype_of(call) == "bool":
            return self._compared(binding.var)
        is_cast = call.op.name == "relax.astype" and dtype_of(call.args[0]) == _WIDE
        if is_cast and self._producer(call.args[0], _MOVEMENTS) is not None:
            return self._cast(call.args[0], str(call.attrs.dtype), graph_cast=True)
        return None

    def _compared(self, expr: relax.Expr) -> relax.Expr | None:
        """A comparison with a constant, and what moves its truth values, on real numbers."""
        truths, after = self._unmoved(expr)
        call = self._producer(truths, _COMPARISONS)
        if call is None or dtype_of(call.args[0]) != _WIDE:
            return None
        number = constant_value(call.args[1])
        if number is None or number.size != 1 or constant_value(call.args[0]) is not None:
            return None
        pivot = int(number.item())
        if abs(pivot) >= _LAST_EXACT:
            return None
        source, before = self._unmoved(call.args[0])
        value = self._replayed(self._around(source, pivot), after + before)
        result = relax.Call(call.op, [value, relax.const(float(pivot), "float32")], call.attrs)
        origins = self._graph.origin_of(truths) if isinstance(truths, relax.Var) else frozenset()
        return self._rewriter.emit(result, self._rewriter.current_origins | origins)

    def _around(self, expr: relax.Expr, pivot: int) -> relax.Expr:
        """Integers as real numbers, all above the pivot one above it, all below one below."""
        emit, none, key = self._rewriter.emit, frozenset[int](), (expr, f"around {pivot}")
        if key not in self._casts:
            value = self._rewriter.new(expr)
            value = emit(relax.op.minimum(value, relax.const(pivot + 1, _WIDE)), none)
            value = emit(relax.op.maximum(value, relax.const(pivot - 1, _WIDE)), none)
            self._casts[key] = emit(relax.op.astype(value, "float32"), none)
        return self._casts[key]

    def _unmoved(self, expr: relax.Expr) -> tuple[relax.Expr, list[relax.Var]]:
        """What an expression was before it was moved, and the movements, the last one first."""
        movements: list[relax.Var] = []
        while (call := self._producer(expr, _MOVEMENTS)) is not None:
            assert isinstance(expr, relax.Var)  # what has a producer is a variable
            movements.append(expr)
            expr = call.args[0]
        return expr, movements

    def _replayed(self, value: relax.Expr, movements: list[relax.Var]) -> relax.Expr:
        """A value of the new graph moved as an old one was."""
        for var in reversed(movements):
            old = self._graph.value_of[var]
            assert isinstance(old, relax.Call)
            call = relax.Call(old.op, [value, *old.args[1:]], old.attrs, old.ty_args)
            value = self._rewriter.emit(call, self._graph.origin_of(var))
        return value

    def _index(self, expr: relax.Expr) -> relax.Expr | None:
        """An index of 64 bits in 32, with its counting from the end; None where it has 32."""
        cast = self._producer(expr, ("relax.astype",))
        if cast is not None and dtype_of(expr) == _NARROW:
            expr = cast.args[0]
        if dtype_of(expr) != _WIDE or constant_value(expr) is not None:
            return None
        from_end = self._from_end(expr)
        if from_end is None:
            return self._cast(expr, _NARROW)
        position, size = self._cast(from_end[0], _NARROW), relax.const(from_end[1], _NARROW)
        emit = self._rewriter.emit
        is_from_end = emit(relax.op.less(position, relax.const(0, _NARROW)))
        return emit(relax.op.where(is_from_end, emit(relax.op.add(position, size)), position))

    def _from_end(self, expr: relax.Expr) -> tuple[relax.Expr, int] | None:
        """Position and axis size of `where(position < 0, position + size, position)`."""
        choice = self._producer(expr, ("relax.where",))
        if choice is None:
            return None
        less = self._producer(choice.args[0], ("relax.less",))
        moved = self._producer(choice.args[1], ("relax.add",))
        position = choice.args[2]
        if less is None or moved is None:
            return None
        zero, size = constant_value(less.args[1]), constant_value(moved.args[1])
        if zero is None or size is None or zero.any() or size.size != 1:
            return None
        if not (less.args[0].same_as(position) and moved.args[0].same_as(position)):
            return None
        if size.item() > np.iinfo(np.int32).max:
            return None
        return position, int(size.item())

    def _cast(self, expr: relax.Expr, dtype: str, graph_cast: bool = False) -> relax.Expr:
        """A cast in front of the movements that lead to an expression.

        Args:
            expr: of the old graph, integers of 64 bits.
            dtype: of the result.
            graph_cast: the model has this cast; else it is no node's, and counts for none.
        """
        expr, movements = self._unmoved(expr)
        origins = None if graph_cast else frozenset[int]()
        if (expr, dtype) not in self._casts:
            cast = relax.op.astype(self._rewriter.new(expr), dtype)
            self._casts[expr, dtype] = self._rewriter.emit(cast, origins)
        return self._replayed(self._casts[expr, dtype], movements)

    def _producer(self, expr: relax.Expr, names: tuple[str, ...]) -> relax.Call | None:
        """The call an expression is bound to, if it is of one of these operators."""
        value = self._graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
        is_one = isinstance(value, relax.Call) and getattr(value.op, "name", "") in names
        return value if is_one else None
