"""Any one reduction: outer loops in parallel, vectors of outputs where the last axis allows."""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.elementwise import schedule_copy
from workers.backends.cpu.schedules.kernel import Kernel, NotCovered, divisor


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
