"""What reshape, transpose and reshape do together, as NNAPI's operations on blocks do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.backends.nnapi.axes import Axes, merged

Argument = int | NDArray[np.int32]


@dataclass(frozen=True)
class Rearrangement:
    """Pieces an image is seen as and the order they are put into, and the operation's arguments."""

    pieces: Axes
    order: Axes
    arguments: Mapping[str, Argument]

    def does(self, pieces: Axes, order: Axes) -> bool:
        """Whether it moves the elements as another movement does."""
        return merged(self.pieces, self.order) == merged(pieces, order)


_BLOCKS = (0, 1, 3, 2, 4, 5)


def _depth_to_space(source: Axes, result: Axes) -> Iterator[Rearrangement]:
    if len(source) != 4 or len(result) != 4:
        return
    n, h, w, _ = source
    size, channels = max(result[1] // h, 1), result[3]
    if size > 1 and result == (n, h * size, w * size, channels):
        yield Rearrangement((n, h, w, size, size, channels), _BLOCKS, {"block_size": size})


def _space_to_depth(source: Axes, result: Axes) -> Iterator[Rearrangement]:
    if len(source) != 4 or len(result) != 4:
        return
    n, h, w, _ = result
    size, channels = max(source[1] // h, 1), source[3]
    if size > 1 and source == (n, h * size, w * size, channels):
        yield Rearrangement((n, h, size, w, size, channels), _BLOCKS, {"block_size": size})


def _batch_to_space(source: Axes, result: Axes) -> Iterator[Rearrangement]:
    """Images of a batch, as rows and columns apart; TensorFlow's order, block major."""
    for taken in _space_to_batch(result, source):
        n, h, bh, w, bw, c = taken.pieces
        arguments = {"block_size": taken.arguments["block_size"]}
        yield Rearrangement((bh, bw, n, h, w, c), (2, 3, 0, 4, 1, 5), arguments)


def _space_to_batch(source: Axes, result: Axes) -> Iterator[Rearrangement]:
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
        yield Rearrangement(pieces, (2, 4, 0, 1, 3, 5), arguments)


def _shuffled(source: Axes, result: Axes) -> Iterator[Rearrangement]:
    """Groups of neighbours along one axis, taken in turns."""
    if source != result:
        return
    for axis, length in enumerate(source):
        order = [*range(len(source) + 1)]
        order[axis], order[axis + 1] = order[axis + 1], order[axis]
        for groups in range(2, length // 2 + 1):
            if length % groups == 0:
                pieces = (*source[:axis], groups, length // groups, *source[axis + 1 :])
                yield Rearrangement(pieces, tuple(order), {"groups": groups, "axis": axis})


REARRANGEMENTS: Mapping[str, Callable[[Axes, Axes], Iterator[Rearrangement]]] = {
    "DEPTH_TO_SPACE": _depth_to_space,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "CHANNEL_SHUFFLE": _shuffled,
}
"""By the operation's name, those that shapes of source and result allow."""


def arguments_of(
    name: str, source: Axes, pieces: Axes, order: Sequence[int], result: Axes
) -> Mapping[str, Argument] | None:
    """The operation's arguments where it does what the three calls do.

    Args:
        name: the NNAPI operation.
        source: shape of what is reshaped first.
        pieces: the shape that is transposed.
        order: for each axis of the transposed, that of the pieces.
        result: the last shape.
    """
    found = REARRANGEMENTS[name](source, result)
    return next((c.arguments for c in found if c.does(pieces, tuple(order))), None)
