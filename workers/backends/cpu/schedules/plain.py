"""Any one reduction: outer loops in parallel, vectors of outputs where the last axis allows."""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.elementwise import schedule_copy
from workers.backends.cpu.schedules.kernel import Kernel, NotCovered, divisor
from workers.backends.cpu.schedules.rows import lanes_of_sum, split_sum


def schedule_plain(kernel: Kernel) -> None:
    """Every block by itself, in the order it stands; correct for any kernel of static shape.

    Raises:
        NotCovered: a loop's length is unknown.
    """
    for block in kernel.blocks:
        if kernel.axes(block)[1]:
            _reduction(kernel, block)
        else:
            schedule_copy(kernel, block)


def _reduction(kernel: Kernel, block: object) -> None:
    sch = kernel.sch
    spatial, _ = kernel.axes(block)
    loops = sch.get_loops(block)
    work = math.prod(kernel.extents(loops))
    outer, summed = loops[:spatial], loops[spatial:]
    if not outer:
        raise NotCovered("a sum of everything")
    if _reads_along_sum(kernel, block) and _partial_sums(kernel, block, work):
        return
    native = kernel.vectors.lanes
    lanes = divisor(kernel.extent(outer[-1]), (2 * native, native, 8, 4))
    *rest, column = outer
    column_outer, lane = sch.split(column, [None, lanes])
    sch.reorder(*rest, column_outer, *summed, lane)
    is_single = len(sch.get(block).writes) == 1
    if lanes > 1 and is_single:
        sch.vectorize(lane)
    fused = sch.fuse(*rest, column_outer)
    kernel.share(fused, work)
    sch.decompose_reduction(block, sch.get_loops(block)[1])


def _reads_along_sum(kernel: Kernel, block: object) -> bool:
    """Whether neighbours in memory are terms of one sum."""
    info = kernel.sch.get(block)
    last = info.iter_vars[-1].var
    return any(len(read.region) and read.region[-1].min.same_as(last) for read in info.reads)


def _partial_sums(kernel: Kernel, block: object, work: int) -> bool:
    """Vectors of partial sums, where the length allows; whether it does."""
    sch = kernel.sch
    spatial, _ = kernel.axes(block)
    loops = sch.get_loops(block)
    outer, summed = loops[:spatial], loops[spatial:]
    # Asked before anything is touched: other loops are tried where it is not.
    if lanes_of_sum(kernel, block, math.prod(kernel.extents(summed))) == 1:
        return False
    sch.fuse(*summed)
    partials = split_sum(kernel, block)
    fused = sch.fuse(*outer)
    for partial in reversed(partials):
        sch.compute_at(partial, fused, preserve_unit_loops=True)
        sch.set_scope(partial, 0, "local")
    kernel.share(fused, work)
    for partial in partials:
        lane, *_, step = sch.get_loops(partial)[1:]
        sch.reorder(step, lane)
        sch.vectorize(lane)
        sch.decompose_reduction(partial, step)
    return True
