"""Reshape, transpose, reshape: how exporters write channel shuffle, depth to space and the like.

On an NCHW image the three move pieces of its axes about; the same pieces of an NHWC image move in
the same way, so no change of layout is needed around them. In a quantized model a quantize and a
dequantize call stand between any two of them; they change every number by itself, wherever it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import relax

from workers.graph.graph import Binding, Graph, static_shape
from workers.graph.quantization import DEQUANTIZE, QUANTIZE, Quantization, quantization_of

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
        inner: variables of everything before the last reshape, which nothing else reads.
        rounded: what the tensor is quantized and dequantized with behind the first reshape and
            behind the transpose; None where it is not.
        origins: original nodes of all of them.
    """

    source: relax.Var
    inner: tuple[relax.Var, ...]
    pieces: tuple[int, ...]
    order: tuple[int, ...]
    source_axes: tuple[tuple[int, ...], ...]
    result_axes: tuple[tuple[int, ...], ...]
    result_shape: tuple[int, ...]
    rounded: tuple[Quantization | None, Quantization | None]
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


@dataclass(frozen=True)
class _Source:
    """What a movement reads: another one, perhaps through quantize and dequantize."""

    binding: Binding
    pair: tuple[relax.Var, ...] = ()
    numbers: Quantization | None = None

    @property
    def variables(self) -> tuple[relax.Var, ...]:
        return (self.binding.var, *self.pair)


def _movement(graph: Graph, last: Binding) -> Movement | None:
    permute = _moved_source(graph, last, "relax.reshape", "relax.permute_dims")
    if permute is None:
        return None
    first = _moved_source(graph, permute.binding, "relax.permute_dims", "relax.reshape")
    if first is None:
        return None
    first_call, permute_call = first.binding.call, permute.binding.call
    assert first_call is not None
    assert permute_call is not None
    source, pieces = static_shape(first_call.args[0]), static_shape(first.binding.var)
    result, axes = static_shape(last.var), permute_call.attrs.axes
    if source is None or pieces is None or result is None or axes is None:
        return None
    if len(source) != 4 or len(result) != 4 or not isinstance(first_call.args[0], relax.Var):
        return None
    order = tuple(int(a) % len(pieces) for a in axes)
    taken = _grouped(source, pieces)
    put = _grouped(result, [pieces[a] for a in order])
    if taken is None or put is None:
        return None
    inner = (*first.variables, *permute.variables)
    return Movement(
        source=first_call.args[0],
        inner=inner,
        pieces=pieces,
        order=order,
        source_axes=taken,
        result_axes=tuple(tuple(order[i] for i in group) for group in put),
        result_shape=result,
        rounded=(first.numbers, permute.numbers),
        origins=frozenset().union(*(graph.origin_of(var) for var in (*inner, last.var))),
    )


def _moved_source(graph: Graph, reader: Binding, name: str, wanted: str) -> _Source | None:
    """The operation `wanted` whose value only this reader, an operation of that name, reads."""
    source = _only_reader_of(graph, reader, name)
    if source is None or source.op_name != DEQUANTIZE:
        found = _Source(source) if source is not None else None
    else:
        found = _behind_pair(graph, source)
    return found if found is not None and found.binding.op_name == wanted else None


def _behind_pair(graph: Graph, dequantize: Binding) -> _Source | None:
    quantize = _only_reader_of(graph, dequantize, DEQUANTIZE)
    source = _only_reader_of(graph, quantize, QUANTIZE) if quantize is not None else None
    if quantize is None or source is None:
        return None
    numbers = quantization_of(dequantize.value)
    if numbers is None or not numbers.is_per_tensor or quantization_of(quantize.value) != numbers:
        return None
    return _Source(source, (quantize.var, dequantize.var), numbers)


def _only_reader_of(graph: Graph, reader: Binding, op_name: str) -> Binding | None:
    """The binding whose value only this reader, an operation of that name, reads."""
    if reader.call is None or reader.op_name != op_name:
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
