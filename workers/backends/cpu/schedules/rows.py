"""Reductions along rows: softmax, layer norm, mean. Each row is finished while it is in cache."""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.kernel import FUNCTION, Kernel, NotCovered, divisor

FEW_LANES = 8
"""Partial sums that are added up one after the other."""


def schedule_rows(kernel: Kernel) -> None:
    """All blocks are computed row by row under the last one's outer loops.

    Raises:
        NotCovered: the last block reduces, or has no rows.
    """
    sch = kernel.sch
    reductions, last = kernel.reductions, kernel.blocks[-1]
    if not reductions or kernel.axes(last)[1]:
        raise NotCovered("the last block is not element-wise")
    *outer, column = sch.get_loops(last)
    if not outer or any(kernel.axes(block)[1] != 1 for block in reductions):
        raise NotCovered("no rows")
    work = math.prod(kernel.extents([*outer, column]))
    partials = [partial for block in reductions for partial in split_sum(kernel, block)]
    *producers, last = sch.get_child_blocks(sch.get_sblock("root"))
    row = sch.fuse(*outer)
    for block in reversed(producers):
        sch.compute_at(block, row, preserve_unit_loops=True)
    kernel.share(row, work * FUNCTION)
    reducing = (*reductions, *partials)
    names = {sch.get(block).name_hint for block in reducing}
    for block in (*producers, last):
        if sch.get(block).name_hint not in names:
            _vectorize(kernel, block)
    for partial in partials:
        # compute_at has put the loops into the order of the axes: lanes first.
        lane, *_, summed = sch.get_loops(partial)[1:]
        sch.reorder(summed, lane)
        sch.vectorize(lane)
        sch.decompose_reduction(partial, summed)


def lanes_of_sum(kernel: Kernel, block: object, length: int) -> int:
    """Partial sums that a sum of `length` terms is split into; 1 where it cannot be."""
    native = kernel.vectors.lanes
    if len(kernel.sch.get(block).writes) > 1:
        return 1
    return divisor(length, (2 * native, native, 8, 4))


def split_sum(kernel: Kernel, block: object) -> tuple[object, ...]:
    """Makes a block of as many partial sums as a register has lanes; `block` adds them up.

    Many of them are added up to a few first: one after the other, each waits for the one before.

    Returns:
        The new blocks in the order of computation; none where the sum's length has no such divisor.
    """
    sch = kernel.sch
    rows = len(sch.get_loops(block)) - 1
    partials = []
    lanes = lanes_of_sum(kernel, block, kernel.extent(sch.get_loops(block)[-1]))
    while lanes > 1:
        _, lane = sch.split(sch.get_loops(block)[-1], [None, lanes])
        partials.append(sch.rfactor(lane, factor_axis=rows))
        lanes = FEW_LANES if lanes > 2 * FEW_LANES else 1
    return tuple(partials)


def _vectorize(kernel: Kernel, block: object) -> None:
    sch = kernel.sch
    loop = sch.get_loops(block)[-1]
    lanes = kernel.vector_length(kernel.extent(loop))
    if lanes > 1:
        sch.vectorize(sch.split(loop, [None, lanes])[1])
