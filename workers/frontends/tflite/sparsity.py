"""Sparse constants as the dense tensors they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

Array = NDArray[Any]


def densified(stored: Array, sparsity: Any, shape: tuple[int, ...]) -> Array:
    """All elements of a tensor of which only some are stored.

    Args:
        stored: the elements of the file, in its order.
        sparsity: the file's account of where they belong: the tensor's axes and, behind them,
            those of blocks, in the order they are walked through, each dense or by lists.
        shape: of the tensor.

    Raises:
        ValueError: lists that do not fit the shape.
    """
    order = [int(axis) for axis in sparsity.traversalOrder]
    blocked = [int(axis) for axis in sparsity.blockMap] if sparsity.blockMap is not None else []
    levels = list(sparsity.dimMetadata)
    sizes = {order[len(shape) + i]: levels[len(shape) + i].denseSize for i in range(len(blocked))}
    block = {axis: int(sizes[len(shape) + i]) for i, axis in enumerate(blocked)}
    result = np.zeros(shape, stored.dtype)
    count = 0
    for count, place in enumerate(_places(levels, 0, 0), 1):
        walked = dict(zip(order, place, strict=True))
        index = [walked[axis] * block.get(axis, 1) for axis in range(len(shape))]
        for i, axis in enumerate(blocked):
            index[axis] += walked[len(shape) + i]
        result[tuple(index)] = stored[count - 1]
    if count != stored.size:
        raise ValueError(f"{stored.size} elements are stored and {count} have a place")
    return result


def _places(levels: list[Any], depth: int, row: int) -> Iterator[tuple[int, ...]]:
    """Indexes of the stored elements, level by level; `row` counts the entries of a level."""
    if depth == len(levels):
        yield ()
        return
    level = levels[depth]
    if level.format == schema.DimensionType.DENSE:
        entries = [(row * level.denseSize + i, i) for i in range(level.denseSize)]
    else:
        begin, end = (int(level.arraySegments.values[row + i]) for i in range(2))
        entries = [(i, int(level.arrayIndices.values[i])) for i in range(begin, end)]
    for entry, index in entries:
        for rest in _places(levels, depth + 1, entry):
            yield (index, *rest)
