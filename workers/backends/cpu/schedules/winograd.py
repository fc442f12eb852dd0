"""Transforms of Winograd's filtering: one tile of the image and one register of channels a step."""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.elementwise import schedule_padding
from workers.backends.cpu.schedules.kernel import MOVING, Kernel, NotCovered

TRANSFORM, RESULT, STEP = (f"nnfarm.winograd_{name}" for name in ("image", "result", "step"))
"""Annotations of the block that writes transformed tiles (points along an axis), of the one that
transforms them back, and its results a tile along an axis."""


def schedule_winograd(kernel: Kernel) -> None:
    """Schedules either transform; all of a tile's numbers are in registers or on the stack.

    Raises:
        NotCovered: it is neither.
    """
    for block in kernel.blocks:
        if kernel.annotation(block, TRANSFORM) is not None:
            return _schedule_image(kernel, block)
        if kernel.annotation(block, RESULT) is not None:
            return _schedule_result(kernel, block)
    raise NotCovered("not a transform")


def _schedule_image(kernel: Kernel, block: object) -> None:
    sch = kernel.sch
    half = kernel.blocks[kernel.index(block) - 1]
    for producer in kernel.producers(half):
        schedule_padding(kernel, producer)
    tile, points, channel = sch.get_loops(block)
    moved = kernel.size(block) * MOVING
    size = int(kernel.annotation(block, TRANSFORM))  # type: ignore[call-overload]
    outer, lane = _registers(kernel, channel)
    rows, columns = sch.split(points, [None, size])
    sch.reorder(tile, outer, rows, columns, lane)
    _stay_local(kernel, half, outer)
    _unroll(kernel, rows, columns)
    sch.vectorize(lane)
    kernel.share(tile, moved)


def _schedule_result(kernel: Kernel, block: object) -> None:
    sch = kernel.sch
    step = int(kernel.annotation(block, STEP))  # type: ignore[call-overload]
    half = kernel.blocks[kernel.index(block) - 1]
    # The consumers first: of what the epilogue reads besides, `producers` leaves no block behind.
    writer, broadcast = kernel.inline_consumers(block)
    if broadcast is not None:
        raise NotCovered("a result that is broadcast")
    for producer in kernel.producers(half):
        schedule_padding(kernel, producer)
    last = block if writer is None else writer
    moved = kernel.size(last) * MOVING
    batch, height, width, channel = sch.get_loops(last)
    tops, rows = sch.split(height, [None, step])
    lefts, columns = sch.split(width, [None, step])
    outer, lane = _registers(kernel, channel)
    sch.reorder(batch, tops, lefts, outer, rows, columns, lane)
    if writer is not None:
        _stay_local(kernel, block, outer)
    _stay_local(kernel, half, outer)
    _unroll(kernel, rows, columns)
    sch.vectorize(lane)
    kernel.share(sch.fuse(batch, tops, lefts), moved)


def _registers(kernel: Kernel, channel: object) -> tuple[object, object]:
    lanes = math.gcd(kernel.extent(channel), kernel.vectors.lanes)
    if lanes == 1:
        raise NotCovered("channels do not fill vectors")
    outer, lane = kernel.sch.split(channel, [None, lanes])
    return outer, lane


def _stay_local(kernel: Kernel, block: object, at: object) -> None:
    """Computes a block for one tile and register, unrolled."""
    sch = kernel.sch
    sch.compute_at(block, at, preserve_unit_loops=True)
    sch.set_scope(block, 0, "local")
    *loops, lane = sch.get_loops(block)[kernel.depth(block, at) :]
    _unroll(kernel, *loops)
    sch.vectorize(lane)


def _unroll(kernel: Kernel, *loops: object) -> None:
    for loop in loops:
        kernel.sch.unroll(loop)
