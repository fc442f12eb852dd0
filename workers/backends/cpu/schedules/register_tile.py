"""Convolution, matmul: a tile of pixels x channels stays in registers while it is summed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workers.backends.cpu.schedules.dot_product import dot_intrinsic
from workers.backends.cpu.schedules.elementwise import schedule_copy, schedule_padding
from workers.backends.cpu.schedules.half_sums import PART, schedule_parts
from workers.backends.cpu.schedules.kernel import Kernel, NotCovered
from workers.backends.cpu.schedules.squares import split_squares, use_squares
from workers.backends.cpu.vectors import DotProduct

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
    parts = [b for b in kernel.blocks if kernel.annotation(b, PART) is not None]
    if len(anchors) != 1 or len(kernel.reductions) != 1 + len(parts):
        raise NotCovered("not one annotated reduction")
    (block,) = anchors
    writer, broadcast = kernel.inline_consumers(block)
    for producer in kernel.producers(block):
        if kernel.annotation(producer, PART) is None:
            schedule_padding(kernel, producer)
    if broadcast is not None:
        schedule_copy(kernel, broadcast)
    work = math.prod(kernel.extents(sch.get_loops(block)))
    anchor = _tile(kernel, block)
    for part in parts:
        schedule_parts(kernel, part, sch.get_loops(block)[kernel.depth(block, anchor)])
    _write(kernel, block, writer, anchor)
    outer = sch.get_loops(block)[: kernel.depth(block, anchor)]
    fused = sch.fuse(*outer)
    kernel.share(fused, work)
    zero = sch.decompose_reduction(block, sch.get_loops(block)[1])
    dot = _dot_of(kernel, block)
    if dot is not None and dot.rows > 1:
        use_squares(kernel, block, zero, dot)
    elif dot is not None:
        _use_dot(kernel, block, zero, dot)


def _dot_of(kernel: Kernel, block: object) -> DotProduct | None:
    intrinsic = kernel.annotation(block, DOT)
    return next((dot for dot in kernel.vectors.dots if dot.intrinsic == intrinsic), None)


def _tile(kernel: Kernel, block: object) -> object:
    """Splits and reorders; returns the innermost loop outside of the sums."""
    sch = kernel.sch
    pixels, channels = (int(kernel.annotation(block, k)) for k in (PIXELS, CHANNELS))  # type: ignore[call-overload]
    spatial, _ = kernel.axes(block)
    loops = sch.get_loops(block)
    summed = loops[spatial:]
    dot = _dot_of(kernel, block)
    terms = [summed.pop()] if dot is not None else []
    if dot is not None and dot.rows > 1:
        split = split_squares(kernel, loops[:spatial], pixels, channels, dot.rows)
    else:
        split = _split(kernel, block, loops[:spatial], (pixels, channels))
    outer, (row_outer, tiles), inner = split
    weight_bytes = int(kernel.annotation(block, WEIGHT_BYTES))  # type: ignore[call-overload]
    # Whichever of the two is small stays in the cache while the other one passes.
    middle = [row_outer, tiles] if weight_bytes <= RESIDENT_BYTES else [tiles, row_outer]
    if kernel.annotation(block, STACKED) and weight_bytes * kernel.extent(outer[0]) <= STACK_BYTES:
        outer, middle = [], [row_outer, *outer, tiles]
    sch.reorder(*outer, *middle, *summed, *inner, *terms)
    if dot is None:
        sch.vectorize(inner[-1])
    return middle[-1]


def _split(
    kernel: Kernel, block: object, loops: Sequence[object], tile: tuple[int, int]
) -> tuple[list[object], list[object], list[object]]:
    """Outer loops, those over tiles of rows and of channels, and those within a tile."""
    sch, (pixels, channels) = kernel.sch, tile
    lanes = kernel.vectors.of(str(sch.get(block).writes[0].source.dtype)).lanes
    *outer, row, channel = loops
    if kernel.annotation(block, FLAT):
        row = sch.fuse(outer.pop(), row)
    row_outer, row_inner = sch.split(row, [None, pixels])
    if channels % lanes:
        raise NotCovered("channels of a tile are not whole registers")
    tiles, vector, lane = sch.split(channel, [None, channels // lanes, lanes])
    sch.unroll(vector)
    sch.unroll(row_inner)
    return outer, [row_outer, tiles], [row_inner, vector, lane]


def _use_dot(kernel: Kernel, block: object, zero: object, dot: DotProduct) -> None:
    sch = kernel.sch
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
