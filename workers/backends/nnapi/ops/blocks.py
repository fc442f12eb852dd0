"""Reshape, transpose, reshape that NNAPI has as one: blocks of pixels, shuffled channels, batches.

Images are [batch, height, width, channels]. What is none of these, `movement` does in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.axes import Axes, merged
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.backends.nnapi.opset import opset
from workers.graph.graph import static_shape

Argument = int | NDArray[np.int32]


@dataclass(frozen=True)
class _Movement:
    """Pieces an image is seen as and the order they are put into, and the operation's arguments."""

    pieces: Axes
    order: Axes
    arguments: Mapping[str, Argument]

    def does(self, pieces: Axes, order: Axes) -> bool:
        """Whether it moves the elements as another movement does."""
        return merged(self.pieces, self.order) == merged(pieces, order)


_BLOCKS = (0, 1, 3, 2, 4, 5)


def _depth_to_space(source: Axes, result: Axes) -> Iterator[_Movement]:
    if len(source) != 4 or len(result) != 4:
        return
    n, h, w, _ = source
    size, channels = max(result[1] // h, 1), result[3]
    if size > 1 and result == (n, h * size, w * size, channels):
        yield _Movement((n, h, w, size, size, channels), _BLOCKS, {"block_size": size})


def _space_to_depth(source: Axes, result: Axes) -> Iterator[_Movement]:
    if len(source) != 4 or len(result) != 4:
        return
    n, h, w, _ = result
    size, channels = max(source[1] // h, 1), source[3]
    if size > 1 and source == (n, h * size, w * size, channels):
        yield _Movement((n, h, size, w, size, channels), _BLOCKS, {"block_size": size})


def _batch_to_space(source: Axes, result: Axes) -> Iterator[_Movement]:
    """Images of a batch, as rows and columns apart; TensorFlow's order, block major."""
    for taken in _space_to_batch(result, source):
        n, h, bh, w, bw, c = taken.pieces
        arguments = {"block_size": taken.arguments["block_size"]}
        yield _Movement((bh, bw, n, h, w, c), (2, 3, 0, 4, 1, 5), arguments)


def _space_to_batch(source: Axes, result: Axes) -> Iterator[_Movement]:
    if len(source) != 4 or len(result) != 4 or 0 in (*source, *result):
        return
    n, h, w, c = source
    bh, bw = h // result[1], w // result[2]
    if bh * bw > 1 and source[1:] == (bh * result[1], bw * result[2], result[3]):
        arguments = {
            "block_size": np.array([bh, bw], np.int32),
            "paddings": np.zeros((2, 2), np.int32),
        }
        pieces = (n, result[1], bh, result[2], bw, c)
        yield _Movement(pieces, (2, 4, 0, 1, 3, 5), arguments)


def _shuffled(source: Axes, result: Axes) -> Iterator[_Movement]:
    """Groups of neighbours along one axis, taken in turns."""
    if source != result:
        return
    for axis, length in enumerate(source):
        order = [*range(len(source) + 1)]
        order[axis], order[axis + 1] = order[axis + 1], order[axis]
        for groups in range(2, length // 2 + 1):
            if length % groups == 0:
                pieces = (*source[:axis], groups, length // groups, *source[axis + 1 :])
                yield _Movement(pieces, tuple(order), {"groups": groups, "axis": axis})


class Block(Operation):
    """One of the operations, recognized by its shapes."""

    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def __init__(self, name: str, candidates: Callable[[Axes, Axes], Iterator[_Movement]]) -> None:
        self.name = name
        self._candidates = candidates

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
        return None not in shapes and self._arguments(site) is not None

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        arguments = self._arguments(site)
        assert arguments is not None  # it fits
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            **{role: _operand(builder, value) for role, value in arguments.items()},
        )

    def _arguments(self, site: Site) -> Mapping[str, Argument] | None:
        pieces, axes = site.shape("first"), site["permute"].attrs.axes
        order = range(len(pieces))[::-1] if axes is None else [int(a) % len(pieces) for a in axes]
        found = self._candidates(site.shape("data"), site.shape("last"))
        return next((c.arguments for c in found if c.does(pieces, tuple(order))), None)


def _operand(builder: ModelBuilder, value: Argument) -> int:
    return builder.int32(value) if isinstance(value, int) else builder.constant(value)


OPERATIONS = (
    Block("DEPTH_TO_SPACE", _depth_to_space),
    Block("SPACE_TO_DEPTH", _space_to_depth),
    Block("SPACE_TO_BATCH_ND", _space_to_batch),
    Block("BATCH_TO_SPACE_ND", _batch_to_space),
    Block("CHANNEL_SHUFFLE", _shuffled),
)
