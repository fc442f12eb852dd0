"""Slices of what was just put together, and slices put together again: the pieces themselves.

Loops that fill a list write every step's result into a copy of the whole list, and read it back:
written out, that is two slices and a concatenation for each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tvm import relax

from workers.graph.graph import Binding, Graph, free_vars, static_shape
from workers.graph.origins import with_origins_of
from workers.graph.rewriter import GraphRewriter, Lazy

_CONCAT, _SLICE = "relax.concat", "relax.strided_slice"


@dataclass(frozen=True)
class _Piece:
    """Neighbouring elements of a tensor of the new graph along an axis."""

    source: relax.Expr
    begin: int
    end: int


@dataclass(frozen=True)
class _Whole:
    """A tensor as pieces along an axis; whether it was cut, so that it need not exist itself."""

    axis: int
    pieces: tuple[_Piece, ...]
    is_cut: bool

    def part(self, begin: int, end: int) -> _Whole:
        """A range of it."""
        pieces, start = [], 0
        for piece in self.pieces:
            size = piece.end - piece.begin
            low, high = max(begin - start, 0), min(end - start, size)
            if low < high:
                pieces.append(_Piece(piece.source, piece.begin + low, piece.begin + high))
            start += size
        return _Whole(self.axis, tuple(pieces), is_cut=True)


def take_parts(graph: Graph) -> Graph:
    """The graph with slices of concatenations, and concatenations of slices, as their pieces."""
    if not any(_is_of_other(graph, binding) for binding in graph.bindings):
        return graph
    taker = _Taker()
    result = GraphRewriter(graph).run(taker.rule)
    return with_origins_of(graph, GraphRewriter(result).run(lambda *_: None))


def _is_of_other(graph: Graph, binding: Binding) -> bool:
    """Whether it is a slice of a concatenation, or the other way round."""
    other = {_SLICE: _CONCAT, _CONCAT: _SLICE}.get(binding.op_name)
    if other is None:
        return False
    sources = (graph.value_of.get(var) for var in free_vars(binding.value))
    return any(getattr(getattr(source, "op", None), "name", "") == other for source in sources)


class _Taker:
    """The rule, and what it knows of the old graph's variables."""

    def __init__(self) -> None:
        self._wholes: dict[relax.Expr, _Whole] = {}

    def rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        """What a binding becomes."""
        if binding.op_name == _CONCAT:
            return self._concatenation(rewriter, binding)
        if binding.op_name == _SLICE:
            return self._slice(rewriter, binding)
        return None

    def _concatenation(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, shape = binding.call, static_shape(binding.var)
        if call is None or shape is None or not isinstance(call.args[0], relax.Tuple):
            return None
        axis = int(call.attrs.axis or 0) % len(shape)
        pieces: list[_Piece] = []
        is_cut = False
        for field in call.args[0].fields:
            whole = self._wholes.get(field)
            if 0 in (static_shape(field) or ()) and 0 not in shape:
                is_cut = True  # adds nothing
            elif whole is not None and whole.is_cut and whole.axis == axis:
                pieces += whole.pieces
                is_cut = True
            else:
                size = (static_shape(field) or ())[axis]
                pieces.append(_Piece(rewriter.new(field), 0, size))
        whole = self._wholes[binding.var] = _Whole(axis, tuple(pieces), is_cut)
        return _later(rewriter, whole) if is_cut else None

    def _slice(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call = binding.call
        assert call is not None  # a slice
        if 0 in (static_shape(call) or ()):
            return _as_it_is(rewriter, binding)
        if static_shape(call) == static_shape(call.args[0]) and _range(call, 0) is not None:
            return rewriter.new(call.args[0])
        source = self._wholes.get(call.args[0]) or _single(rewriter, call)
        bounds = None if source is None else _range(call, source.axis)
        if source is None or bounds is None:
            return None
        part = source.part(*bounds)
        if len(part.pieces) == 1 and _is_all(part.pieces[0], part.axis):
            return part.pieces[0].source
        self._wholes[binding.var] = part
        if len(part.pieces) > 1 and not source.is_cut:  # it is there, and one slice is simpler
            return _as_it_is(rewriter, binding)
        return _later(rewriter, part)


def _single(rewriter: GraphRewriter, call: relax.Call) -> _Whole | None:
    """The tensor that a slice is of as its only piece, along the axis that is cut."""
    shape = static_shape(call.args[0])
    axes = [int(field) for field in call.args[1].fields]
    if shape is None:
        return None
    cut = [
        a % len(shape) for a in axes if _range(call, a % len(shape)) not in (None, (0, shape[a]))
    ]
    if len(cut) != 1:
        return None
    piece = _Piece(rewriter.new(call.args[0]), 0, shape[cut[0]])
    return _Whole(cut[0], (piece,), is_cut=False)


def _range(call: relax.Call, axis: int) -> tuple[int, int] | None:
    """Begin and end of a slice that cuts no other axis."""
    shape = static_shape(call.args[0])
    lists = [[int(field) for field in argument.fields] for argument in call.args[1:]]
    if shape is None:
        return None
    axes, begins, ends, strides = (*lists, [1] * len(lists[0]))[:4]
    bounds = (0, shape[axis])
    for place, begin, end, stride in zip(axes, begins, ends, strides, strict=True):
        size = shape[place]
        cut = slice(begin, end, stride).indices(size)
        if place % len(shape) == axis and stride == 1:
            bounds = cut[:2]
        elif cut != (0, size, 1):
            return None
    return bounds if bounds[0] < bounds[1] else None


def _is_all(piece: _Piece, axis: int) -> bool:
    return piece.begin == 0 and piece.end == (static_shape(piece.source) or ())[axis]


def _as_it_is(rewriter: GraphRewriter, binding: Binding) -> Lazy:
    origins = rewriter.current_origins  # what is read by nobody but the end has none there
    return lambda: rewriter.emit(rewriter.new(binding.value), origins)


def _later(rewriter: GraphRewriter, whole: _Whole) -> Lazy:
    origins, axis = rewriter.current_origins, whole.axis

    def emit() -> relax.Expr:
        parts = [_cut(rewriter, piece, axis, origins) for piece in _joined(whole.pieces)]
        return parts[0] if len(parts) == 1 else rewriter.emit(relax.op.concat(parts, axis), origins)

    return emit


def _cut(rewriter: GraphRewriter, piece: _Piece, axis: int, origins: frozenset[int]) -> relax.Expr:
    if _is_all(piece, axis):
        return piece.source
    cut = relax.op.strided_slice(piece.source, [axis], [piece.begin], [piece.end])
    return rewriter.emit(cut, origins)


def _joined(pieces: Sequence[_Piece]) -> Iterable[_Piece]:
    """Neighbours of one tensor as one piece."""
    last = pieces[0]
    for piece in pieces[1:]:
        if piece.source.same_as(last.source) and piece.begin == last.end:
            last = _Piece(last.source, last.begin, piece.end)
        else:
            yield last
            last = piece
    yield last
