"""Transposes: what is read along one axis is written along another.

In tiles, so that lines of the cache are used whole on both sides, with vectors along the one of the
two axes whose length allows.
"""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.elementwise import inline_into_last
from workers.backends.cpu.schedules.kernel import MOVING, Kernel, NotCovered, divisor

LANES = (16, 8, 4)

ROWS = 4
"""Lines that a tile reads or writes at a time. More fight for the same ways of the cache."""

MAX_WHOLE = 64
"""An axis that has no divisor is one tile up to this length."""

MAX_UNROLLED = 32


def schedule_transposition(kernel: Kernel) -> None:
    """Producers are inlined into the last block, which runs in tiles of two axes.

    Raises:
        NotCovered: something reduces, nothing is read across, or neither axis fills vectors.
    """
    if kernel.reductions:
        raise NotCovered("a reduction")
    last = kernel.blocks[-1]
    inline_into_last(kernel)
    position = _axis_read_along(kernel, last)
    sch, size = kernel.sch, kernel.size(last)
    *outer, written = sch.get_loops(last)
    read = outer.pop(position)
    vector, rows = (read, written) if _lanes(kernel, read) > 1 else (written, read)
    if _lanes(kernel, vector) == 1:
        raise NotCovered("neither axis fills vectors")
    vector_outer, vector = sch.split(vector, [None, _lanes(kernel, vector)])
    rows_outer, rows = sch.split(rows, [None, _rows(kernel, rows)])
    sch.reorder(*outer, vector_outer, rows_outer, rows, vector)
    sch.vectorize(vector)
    if kernel.extent(rows) <= MAX_UNROLLED:
        sch.unroll(rows)
    fused = sch.fuse(*outer, vector_outer, rows_outer)
    kernel.share(fused, size * MOVING)


def _axis_read_along(kernel: Kernel, block: object) -> int:
    """Which axis of the block its input is contiguous along.

    Raises:
        NotCovered: the last one, none, or more than one input of that size.
    """
    block_now = kernel.sch.get(block)
    variables = [axis.var for axis in block_now.iter_vars]
    size = kernel.size(block)
    across: set[int] = set()
    for read in block_now.reads:
        if not len(read.region):
            continue  # a single value
        index = read.region[-1].min
        position = next((i for i, v in enumerate(variables) if v.same_as(index)), None)
        is_whole = math.prod(int(n) for n in read.source.shape) == size
        if is_whole and position != len(variables) - 1:
            across.add(-1 if position is None else position)
    if len(across) != 1 or across == {-1}:
        raise NotCovered("not read along one other axis")
    return across.pop()


def _lanes(kernel: Kernel, loop: object) -> int:
    return divisor(kernel.extent(loop), LANES)


def _rows(kernel: Kernel, loop: object) -> int:
    extent = kernel.extent(loop)
    rows = divisor(extent, (ROWS,))
    if rows == 1 and extent <= MAX_WHOLE:
        return extent
    return rows
