"""Convolution, matmul: a tile of pixels x channels stays in registers while it is summed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workers.backends.cpu.schedules.dot_product import dot_intrinsic
from workers.backends.cpu.schedules.elementwise import schedule_copy, schedule_padding
from workers.backends.cpu.schedules.kernel import Kernel, NotCovered

PIXELS, CHANNELS = "nnfarm.tile_pixels", "nnfarm.tile_channels"
"""Annotations of a block to tile, set by the operator's lowering; see `tiles.choose_tile`."""

FLAT = "nnfarm.tile_flat"
"""Annotation: pixel tiles run over the two last pixel axes as one."""

RESIDENT_BYTES = 256 << 10
"""Weights up to this size stay in the second-level cache while pixels pass by."""

DOT = "nnfarm.dot_product"
"""Annotation: the instruction that sums along the innermost axis, by its name in LLVM."""

WEIGHT_BYTES = "nnfarm.weight_bytes"
"""Annotation: size of all weights; of a stack of matrices, of one."""

STACKED = "nnfarm.stacked"
"""Annotation: the outermost axis counts matrices that read neighbouring numbers of each pixel."""

STACK_BYTES = 640 << 10
"""Stacked weights up to this size all stay in the second-level cache while pixels pass by."""


def schedule_register_tile(kernel: Kernel) -> None:
    """Schedules a kernel around one block with the annotations.

    Raises:
        NotCovered: there is no such block.
    """
    sch = kernel.sch
    anchors = [b for b in kernel.blocks if kernel.annotation(b, PIXELS) is not None]
    if len(anchors) != 1 or len(kernel.reductions) != 1:
        raise NotCovered("not one annotated reduction")
    (block,) = anchors
    writer, broadcast = kernel.inline_consumers(block)
    for producer in kernel.producers(block):
        schedule_padding(kernel, producer)
    if broadcast is not None:
        schedule_copy(kernel, broadcast)
    work = math.prod(kernel.extents(sch.get_loops(block)))
    anchor = _tile(kernel, block)
    _write(kernel, block, writer, anchor)
    outer = sch.get_loops(block)[: kernel.depth(block, anchor)]
    fused = sch.fuse(*outer)
    kernel.share(fused, work)
    dot = kernel.annotation(block, DOT)
    zero = sch.decompose_reduction(block, sch.get_loops(block)[1])
    if dot is not None:
        _use_dot(kernel, block, zero, str(dot))


def _tile(kernel: Kernel, block: object) -> object:
    """Splits and reorders; returns the innermost loop outside of the sums."""
    sch = kernel.sch
    pixels, channels = (int(kernel.annotation(block, k)) for k in (PIXELS, CHANNELS))  # type: ignore[call-overload]
    spatial, _ = kernel.axes(block)
    loops = sch.get_loops(block)
    *outer, row, channel = loops[:spatial]
    summed = loops[spatial:]
    if kernel.annotation(block, FLAT):
        row = sch.fuse(outer.pop(), row)
    row_outer, row_inner = sch.split(row, [None, pixels])
    lanes = kernel.vectors.lanes
    if channels % lanes:
        raise NotCovered("channels of a tile are not whole registers")
    tiles, vector, lane = sch.split(channel, [None, channels // lanes, lanes])
    weight_bytes = int(kernel.annotation(block, WEIGHT_BYTES))  # type: ignore[call-overload]
    # Whichever of the two is small stays in the cache while the other one passes.
    middle = [row_outer, tiles] if weight_bytes <= RESIDENT_BYTES else [tiles, row_outer]
    if kernel.annotation(block, STACKED) and weight_bytes * kernel.extent(outer[0]) <= STACK_BYTES:
        outer, middle = [], [row_outer, *outer, tiles]
    is_dot = kernel.annotation(block, DOT) is not None
    terms = [summed.pop()] if is_dot else []
    sch.reorder(*outer, *middle, *summed, row_inner, vector, lane, *terms)
    if not is_dot:
        sch.vectorize(lane)
    sch.unroll(vector)
    sch.unroll(row_inner)
    return middle[-1]


def _use_dot(kernel: Kernel, block: object, zero: object, intrinsic: str) -> None:
    sch = kernel.sch
    dot = next(d for d in kernel.vectors.dots if d.intrinsic == intrinsic)
    sch.vectorize(sch.get_loops(zero)[-1])
    sch.tensorize(sch.get_loops(block)[-2], dot_intrinsic(dot, kernel.vectors.lanes))


def _write(kernel: Kernel, block: object, writer: object, anchor: object) -> None:
    """The epilogue reads the tile from registers and writes it out."""
    sch = kernel.sch
    depth = kernel.depth(block, anchor)
    sch.reverse_compute_at(writer, anchor, preserve_unit_loops=True)
    sch.set_scope(block, 0, "local")
    *rows, channel = sch.get_loops(writer)[depth:]
    buffer = sch.get(writer).writes[0].source
    whole = math.gcd(kernel.extent(channel), int(buffer.shape[-1]))
    lanes = math.gcd(whole, kernel.vectors.lanes)
    _unroll(kernel, rows)
    if lanes > 1:
        vector, lane = sch.split(channel, [None, lanes])
        sch.vectorize(lane)
        sch.unroll(vector)


def _unroll(kernel: Kernel, loops: Sequence[object]) -> None:
    for loop in loops:
        kernel.extent(loop)
        kernel.sch.unroll(loop)
