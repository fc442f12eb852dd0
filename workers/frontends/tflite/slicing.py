"""Operators that take parts of a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter


@dataclass(frozen=True)
class Bounds:
    """A STRIDED_SLICE by the axes of its data, masks applied.

    Attributes:
        begins: first index of each axis.
        ends: index after the last one; below zero counts from the end, minus the length and one
            is before the first.
        strides: steps between indexes.
        shape: of the result, without dropped axes and with new ones.
    """

    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)

    def add(self, length: int, part: slice) -> int:
        """One more axis of some length; how many of its indexes the part has."""
        begin, end, stride = part.indices(length)
        self.begins.append(begin)
        self.ends.append(end if end >= 0 else -length - 1)  # -1 would be the last index
        self.strides.append(stride)
        return len(range(begin, end, stride))


def slice_bounds(op: Emitter, shape: Sequence[int]) -> Bounds:
    """What a STRIDED_SLICE takes of data of a shape.

    Raises:
        NnfarmError: `compile.unsupported_operation` for an index outside of the data and for a
            slice of more axes than the data has.
    """
    begins, ends, strides = (op.integers(i) for i in (1, 2, 3))
    found = Bounds()
    for position, axis in _axes(op, len(begins), len(shape)):
        if axis is None:
            found.shape.append(1)
            continue
        if position is None:
            found.shape.append(found.add(shape[axis], slice(None)))
            continue
        begin, end, stride = begins[position], ends[position], strides[position]
        if op.option("offset", False):
            end += begin
        if _masked(op, "shrinkAxisMask", position):
            if not -shape[axis] <= begin < shape[axis]:
                raise op.unsupported(f"takes index {begin} of an axis of {shape[axis]}")
            found.add(shape[axis], slice(begin % shape[axis], begin % shape[axis] + 1))
            continue
        first = None if _masked(op, "beginMask", position) else begin
        last = None if _masked(op, "endMask", position) else end
        found.shape.append(found.add(shape[axis], slice(first, last, stride)))
    return found


def _masked(op: Emitter, mask: str, position: int) -> bool:
    return bool(op.option(mask, 0) >> position & 1)


def _axes(op: Emitter, stated: int, rank: int) -> Iterator[tuple[int | None, int | None]]:
    """Position in the stated bounds and axis of the data; either may be missing."""
    new = [_masked(op, "newAxisMask", i) for i in range(stated)]
    ellipsis = next((i for i in range(stated) if _masked(op, "ellipsisMask", i)), stated)
    taken = sum(not new[i] and i != ellipsis for i in range(stated))
    if taken > rank:
        raise op.unsupported(f"slices {taken} axes of data that has {rank}")
    axis = 0
    for position in range(max(stated, ellipsis + 1)):
        if position == ellipsis:
            # All axes that no other bound stands for; without an ellipsis it is at the end.
            yield from ((None, axis + i) for i in range(rank - taken))
            axis += rank - taken
        elif new[position]:
            yield position, None
        else:
            yield position, axis
            axis += 1


def _strided_slice(op: Emitter) -> None:
    shape = op.shape(0)
    bounds = slice_bounds(op, shape)
    value = op.real(0)
    if shape:
        axes = list(range(len(shape)))
        value = op.emit(
            relax.op.strided_slice(value, axes, bounds.begins, bounds.ends, bounds.strides)
        )
    if op.shape_of(value) != tuple(bounds.shape):
        value = relax.op.reshape(value, bounds.shape)
    op.give(value)


def _slice(op: Emitter) -> None:
    begins, sizes = op.integers(1), op.integers(2)
    shape = op.shape(0)
    ends = [
        length if size < 0 else begin + size
        for begin, size, length in zip(begins, sizes, shape, strict=True)
    ]
    op.give(relax.op.strided_slice(op.real(0), list(range(len(shape))), begins, ends))


def _unpack(op: Emitter) -> None:
    count, axis = len(op.operator.outputs), int(op.option("axis", 0))
    _split_into(op, op.real(0), count, axis, squeeze=True)


def _split(op: Emitter) -> None:
    axis = op.integers(0)[0]
    _split_into(op, op.real(1), len(op.operator.outputs), axis)


def _split_v(op: Emitter) -> None:
    axis, sizes, data = op.integers(2)[0], op.integers(1), op.real(0)
    length = op.shape_of(data)[axis]
    if -1 in sizes:
        sizes[sizes.index(-1)] = length - sum(size for size in sizes if size >= 0)
    bounds = [int(b) for b in np.cumsum(sizes)[:-1]]
    _split_into(op, data, bounds if bounds else 1, axis)


def _split_into(
    op: Emitter, data: relax.Expr, parts: int | list[int], axis: int, squeeze: bool = False
) -> None:
    pieces = op.emit(relax.op.split(data, parts, axis))
    for position in range(len(op.operator.outputs)):
        piece = op.emit(relax.TupleGetItem(pieces, position))
        op.give(op.emit(relax.op.squeeze(piece, [axis])) if squeeze else piece, position)


CONVERTERS: Mapping[str, Converter] = {
    "SLICE": _slice,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _strided_slice,
    "UNPACK": _unpack,
}
"""By TFLite operator name."""
