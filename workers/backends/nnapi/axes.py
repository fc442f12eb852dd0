"""Transposes with as few axes as say the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations

MAX_RANK = 4
"""NNAPI's."""

_MAX_AXES = 6

Axes = tuple[int, ...]


def merged(shape: Sequence[int], order: Sequence[int]) -> tuple[Axes, Axes]:
    """A transpose with as few axes as say the same.

    Args:
        shape: sizes of the source's axes.
        order: for each axis of the result, the axis of the source.

    Returns:
        Shape and order without axes of one element, neighbours that stay neighbours joined.
    """
    kept = [a for a in order if shape[a] != 1] or [0]
    runs: list[list[int]] = [[kept[0]]]
    rank_of = {axis: place for place, axis in enumerate(sorted(kept))}
    for axis in kept[1:]:
        if rank_of[axis] == rank_of[runs[-1][-1]] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    in_source = sorted(runs)
    sizes = []
    for run in in_source:
        size = 1
        for axis in run:
            size *= shape[axis]
        sizes.append(size)
    return tuple(sizes), tuple(in_source.index(run) for run in runs)


def steps_of(shape: Axes, order: Axes) -> tuple[Axes, ...] | None:
    """One or two transposes of low rank that together are the one wanted; None: there are none."""
    if len(merged(shape, order)[0]) <= MAX_RANK:
        return (order,)
    return _two_steps(order) if len(order) <= _MAX_AXES else None


@cache
def _two_steps(order: Axes) -> tuple[Axes, Axes] | None:
    sizes = (2,) * len(order)  # no axis vanishes
    for first in permutations(range(len(order))):
        second = tuple(first.index(axis) for axis in order)
        if all(len(merged(sizes, step)[0]) <= MAX_RANK for step in (first, second)):
            return first, second
    return None
