"""Reshape, transpose, reshape that NNAPI has as one operation: blocks of pixels, shuffled channels.

Images are [batch, height, width, channels]. What is none of these, `movement` does in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.backends.nnapi.opset import opset
from workers.graph.graph import static_shape

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Movement:
    """An image, the pieces it is seen as, the order they are put into, and the image they make."""

    source: Shape
    pieces: Shape
    order: Shape
    result: Shape


def _depth_to_space(move: _Movement) -> Mapping[str, int] | None:
    if len(move.pieces) != 6 or move.order != (0, 1, 3, 2, 4, 5):
        return None
    n, h, w, rows, columns, c = move.pieces
    is_block = rows == columns and move.source == (n, h, w, rows * columns * c)
    return {"block_size": rows} if is_block and move.result == (n, h * rows, w * rows, c) else None


def _space_to_depth(move: _Movement) -> Mapping[str, int] | None:
    if len(move.pieces) != 6 or move.order != (0, 1, 3, 2, 4, 5):
        return None
    n, h, rows, w, columns, c = move.pieces
    is_block = rows == columns and move.source == (n, h * rows, w * columns, c)
    return {"block_size": rows} if is_block and move.result == (n, h, w, rows * rows * c) else None


def _shuffled(move: _Movement) -> Mapping[str, int] | None:
    """Groups of neighbours along one axis, taken in turns."""
    if move.source != move.result or len(move.pieces) != len(move.source) + 1:
        return None
    for axis in range(len(move.source)):
        order = [*range(len(move.pieces))]
        order[axis], order[axis + 1] = order[axis + 1], order[axis]
        groups, each = move.pieces[axis : axis + 2]
        joined = (*move.pieces[:axis], groups * each, *move.pieces[axis + 2 :])
        if move.order == tuple(order) and joined == move.source:
            return {"groups": groups, "axis": axis}
    return None


class Block(Operation):
    """One of the operations, recognized by its shapes."""

    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def __init__(
        self, name: str, arguments: Callable[[_Movement], Mapping[str, int] | None]
    ) -> None:
        self.name = name
        self._arguments = arguments

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        first = is_op("relax.reshape")(data, wildcard())
        permute = is_op("relax.permute_dims")(first)
        last = is_op("relax.reshape")(permute, wildcard())
        yield Pattern(last, {"data": data, "first": first, "permute": permute, "last": last})

    def fits(self, site: Site) -> bool:
        if site.feature_level < opset()[self.name].level:
            return False
        shapes = [static_shape(site[part]) for part in ("data", "first", "last")]
        return None not in shapes and self._arguments(_movement(site)) is not None

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        arguments = self._arguments(_movement(site))
        assert arguments is not None  # it fits
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            **{role: builder.int32(value) for role, value in arguments.items()},
        )


def _movement(site: Site) -> _Movement:
    pieces, axes = site.shape("first"), site["permute"].attrs.axes
    order = range(len(pieces))[::-1] if axes is None else [int(a) % len(pieces) for a in axes]
    return _Movement(site.shape("data"), pieces, tuple(order), site.shape("last"))


OPERATIONS = (
    Block("DEPTH_TO_SPACE", _depth_to_space),
    Block("SPACE_TO_DEPTH", _space_to_depth),
    Block("CHANNEL_SHUFFLE", _shuffled),
)
