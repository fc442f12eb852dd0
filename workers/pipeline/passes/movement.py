"""Reshape, transpose, reshape: how exporters write channel shuffle, depth to space and the like.

On an NCHW image the three move pieces of its axes about; the same pieces of an NHWC image move in
the same way, so no change of layout is needed around them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import relax

from workers.graph.graph import Binding, Graph, static_shape

_NHWC = (0, 2, 3, 1)


@dataclass(frozen=True)
class Movement:
    """One reshape of an NCHW image, a transpose, and a reshape to an NCHW image.

    Attributes:
        source: the image, a variable of the graph.
        pieces: shape behind the first reshape.
        order: axes of the transpose.
        source_axes: for each image axis of the source, the pieces it was taken apart into.
        result_axes: for each image axis of the result, the pieces (by their place in `pieces`)
            it is put together from.
        result_shape: NCHW.
        inner: variables of the first reshape and the transpose, which nothing else reads.
        origins: original nodes of all three.
    """

    source: relax.Var
    inner: tuple[relax.Var, relax.Var]
    pieces: tuple[int, ...]
    order: tuple[int, ...]
    source_axes: tuple[tuple[int, ...], ...]
    result_axes: tuple[tuple[int, ...], ...]
    result_shape: tuple[int, ...]
    origins: frozenset[int]

    def channels_last(self) -> tuple[list[int], list[int], list[int]]:
        """The same movement of the NHWC image: first shape, order of axes, last shape."""
        source = [piece for axis in _NHWC for piece in self.source_axes[axis]]
        result = [piece for axis in _NHWC for piece in self.result_axes[axis]]
        return (
            [self.pieces[piece] for piece in source],
            [source.index(piece) for piece in result],
            [self.result_shape[axis] for axis in _NHWC],
        )


def find_movements(graph: Graph) -> Mapping[relax.Var, Movement]:
    """Movements of images, by the variable of their last reshape."""
    found = {}
    for binding in graph.bindings:
        movement = _movement(graph, binding)
        if movement is not None:
            found[binding.var] = movement
    return found


def _movement(graph: Graph, last: Binding) -> Movement | None:
    permute = _only_reader_of(graph, last, "relax.reshape")
    first = _only_reader_of(graph, permute, "relax.permute_dims") if permute else None
    if permute is None or first is None or first.op_name != "relax.reshape":
        return None
    assert first.call is not None
    assert permute.call is not None
    source, pieces = static_shape(first.call.args[0]), static_shape(first.var)
    result, axes = static_shape(last.var), permute.call.attrs.axes
    if source is None or pieces is None or result is None or axes is None:
        return None
    if len(source) != 4 or len(result) != 4 or not isinstance(first.call.args[0], relax.Var):
        return None
    order = tuple(int(a) % len(pieces) for a in axes)
    taken = _grouped(source, pieces)
    put = _grouped(result, [pieces[a] for a in order])
    if taken is None or put is None:
        return None
    origins = (graph.origin_of(b.var) for b in (first, permute, last))
    return Movement(
        source=first.call.args[0],
        inner=(first.var, permute.var),
        pieces=pieces,
        order=order,
        source_axes=taken,
        result_axes=tuple(tuple(order[i] for i in group) for group in put),
        result_shape=result,
        origins=frozenset().union(*origins),
    )


def _only_reader_of(graph: Graph, reader: Binding | None, op_name: str) -> Binding | None:
    """The binding whose value only this reader, an operation of that name, reads."""
    if reader is None or reader.call is None or reader.op_name != op_name:
        return None
    source = reader.call.args[0]
    if source not in graph.value_of or source in graph.outputs:
        return None
    if len(graph.users.get(source, ())) != 1:
        return None
    return Binding(source, graph.value_of[source])


def _grouped(whole: Sequence[int], pieces: Sequence[int]) -> tuple[tuple[int, ...], ...] | None:
    """Consecutive pieces whose product is each axis; None where they do not line up."""
    groups: list[tuple[int, ...]] = []
    start = 0
    for size in whole:
        end = start
        while end < len(pieces) and math.prod(pieces[start:end]) < size:
            end += 1
        if math.prod(pieces[start:end]) != size:
            return None
        groups.append(tuple(range(start, end)))
        start = end
    rest = tuple(range(start, len(pieces)))
    if any(pieces[i] != 1 for i in rest):
        return None
    groups[-1] += rest
    return tuple(groups)
