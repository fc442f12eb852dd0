"""Integers of 64 bits as those of 32, and gathers at computed positions as rows.

Sums, products and all that moves elements give the same last 32 bits whether the upper ones are
there or not. So where 32 bits are asked for, because they are an index (one outside its axis is an
error of the model's input, ONNX Gather) or small by their making, the whole way from the model's
input on is computed in 32, and one conversion is left at the border.
"""

from __future__ import annotations

import numpy as np
from tvm import relax

from workers.graph.bounds import Bounds, bounds_of
from workers.graph.graph import Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter
from workers.pipeline.passes.computed_gathers import elements_at, rows_at

WIDE, NARROW = "int64", "int32"
MOVEMENTS = tuple(
    f"relax.{name}" for name in ("reshape", "permute_dims", "strided_slice", "broadcast_to")
)
_SAME_BITS = frozenset(
    {
        *MOVEMENTS,
        *("relax.tile", "relax.flip", "relax.add", "relax.subtract", "relax.multiply"),
        *("relax.negative", "relax.cumsum", "relax.sum", "relax.where", "relax.concat"),
    }
)
"""The last 32 bits of their results depend on the last 32 of their operands only."""

_SAME_NUMBERS = frozenset(
    f"relax.{name}" for name in ("maximum", "minimum", "abs", "max", "min", "floor_mod")
)
"""Right in 32 bits where the operands fit."""

_GATHERS = frozenset({"relax.take", "relax.gather_elements", "relax.gather_nd"})


def is_computed_gather(call: relax.Call | None) -> bool:
    """Whether it is a gather whose positions are computed, of integers, and its shapes known."""
    name = "" if call is None else getattr(call.op, "name", "")
    if call is None or name not in _GATHERS or constant_value(call.args[1]) is not None:
        return False
    if name == "relax.gather_nd" and int(call.attrs.batch_dims):
        return False
    is_known = name == "relax.take" or None not in map(static_shape, (*call.args[:2], call))
    return is_known and dtype_of(call.args[1]) in (WIDE, NARROW)


class NarrowValues:
    """Forms of a graph's integers in 32 bits, made when asked for, each once.

    Args:
        graph: the old graph.
        rewriter: of the new one.
    """

    def __init__(self, graph: Graph, rewriter: GraphRewriter) -> None:
        self._graph = graph
        self._rewriter = rewriter
        self._made: dict[relax.Expr, relax.Expr] = {}
        self._bounds: dict[relax.Expr, Bounds] = {}

    def fits(self, expr: relax.Expr) -> bool:
        """Whether every value an old expression may have has 32 bits."""
        if expr not in self._bounds:
            self._bounds[expr] = bounds_of(self._graph, expr)
        low, high = self._bounds[expr]
        info = np.iinfo(NARROW)
        return info.min <= low and high <= info.max

    def is_made_here(self, expr: relax.Expr) -> bool:
        """Whether an expression fits and is computed in 32 bits, rather than converted."""
        if not isinstance(expr, relax.Var) or not self.fits(expr):
            return False
        return self._is_computed(self._graph.value_of.get(expr))

    def of(self, expr: relax.Expr) -> relax.Expr:
        """The last 32 bits of an old expression, in the new graph."""
        if dtype_of(expr) != WIDE:
            return self._rewriter.new(expr)
        array = constant_value(expr)
        if array is not None:
            return relax.const(array.astype(NARROW), NARROW)
        if expr not in self._made:
            self._made[expr] = self._make(expr)
        return self._made[expr]

    def index(self, expr: relax.Expr) -> relax.Expr:
        """Positions along an axis; those that count from its end are still told by their sign."""
        cast = self._graph.producer(expr, "relax.astype")
        if cast is not None and dtype_of(expr) == NARROW and dtype_of(cast.args[0]) == WIDE:
            expr = cast.args[0]
        from_end = self._from_end(expr)
        if from_end is None:
            return self.of(expr)
        position, size = self.of(from_end[0]), relax.const(from_end[1], NARROW)
        if bounds_of(self._graph, from_end[0])[0] >= 0:
            return position
        emit = self._rewriter.emit
        is_from_end = emit(relax.op.less(position, relax.const(0, NARROW)))
        return emit(relax.op.where(is_from_end, emit(relax.op.add(position, size)), position))

    def gathered(self, call: relax.Call) -> relax.Expr:
        """A gather at computed positions (`is_computed_gather`), these in 32 bits."""
        index = self.index(call.args[1])
        return self._rewriter.emit(self._gather(call, self._rewriter.new(call.args[0]), index))

    def _is_computed(self, value: relax.Expr | None) -> bool:
        if not isinstance(value, relax.Call):
            return False
        name = getattr(value.op, "name", "")
        if name == "relax.astype":
            return dtype_of(value.args[0]) != WIDE and self.fits(value.args[0])
        if name in _SAME_NUMBERS:
            return all(self.fits(arg) for arg in value.args)
        return name in _SAME_BITS or is_computed_gather(value)

    def _make(self, expr: relax.Expr) -> relax.Expr:
        value = self._graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
        origins = self._graph.origin_of(expr) if isinstance(expr, relax.Var) else frozenset()
        if not self._is_computed(value):
            # Nobody's: the border's conversion. Only what gives positions has them in 32 bits.
            gives_positions = self._graph.producer(expr, "relax.argmax", "relax.argmin") is not None
            cast = relax.op.astype(self._rewriter.new(expr), NARROW)
            return self._rewriter.emit(cast, origins if gives_positions else frozenset())
        assert isinstance(value, relax.Call)
        for same in (self._inside(value), self._never_from_end(value)):
            if same is not None:
                return self.of(same)
        with self._rewriter.on_behalf_of(origins):
            return self._rewriter.emit(self._computed(value))

    def _computed(self, call: relax.Call) -> relax.Expr:
        name = call.op.name
        if name == "relax.astype":
            source = self._rewriter.new(call.args[0])
            return source if dtype_of(source) == NARROW else relax.op.astype(source, NARROW)
        if name in _GATHERS:
            return self._gather(call, self.of(call.args[0]), self.index(call.args[1]))
        if name == "relax.concat":
            items = relax.Tuple([self.of(item) for item in call.args[0].fields])
            return relax.Call(call.op, [items], call.attrs, call.ty_args)
        if name == "relax.cumsum":
            axis = None if call.attrs.axis is None else int(call.attrs.axis)
            data = self.of(call.args[0])
            return relax.op.cumsum(data, axis, exclusive=bool(call.attrs.exclusive))
        args = [self.of(arg) if dtype_of(arg) else arg for arg in call.args]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _gather(self, call: relax.Call, data: relax.Expr, index: relax.Expr) -> relax.Expr:
        if call.op.name == "relax.take":
            return relax.Call(call.op, [data, index], call.attrs, call.ty_args)
        if call.op.name == "relax.gather_elements":
            return elements_at(self._rewriter, data, index, int(call.attrs.axis))
        return rows_at(self._rewriter, data, index, static_shape(call) or ())

    def _inside(self, call: relax.Call) -> relax.Expr | None:
        """The position itself where `floor_mod(position, size)` has none outside."""
        size = constant_value(call.args[1]) if call.op.name == "relax.floor_mod" else None
        if size is None or size.size != 1:
            return None
        low, high = bounds_of(self._graph, call.args[0])
        return call.args[0] if low >= 0 and high < size.item() else None

    def _never_from_end(self, call: relax.Call) -> relax.Expr | None:
        """The position itself where `where(position < 0, ..., position)` has none below 0."""
        if call.op.name != "relax.where":
            return None
        less = self._graph.producer(call.args[0], "relax.less")
        if less is None or not less.args[0].same_as(call.args[2]):
            return None
        zero = constant_value(less.args[1])
        is_sign = zero is not None and not zero.any()
        return call.args[2] if is_sign and bounds_of(self._graph, call.args[2])[0] >= 0 else None

    def _from_end(self, expr: relax.Expr) -> tuple[relax.Expr, int] | None:
        """Position and axis size of `where(position < 0, position + size, position)`."""
        choice = self._graph.producer(expr, "relax.where")
        if choice is None:
            return None
        less = self._graph.producer(choice.args[0], "relax.less")
        moved = self._graph.producer(choice.args[1], "relax.add")
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
