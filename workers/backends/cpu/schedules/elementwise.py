"""Element-wise chains, copies, transposes, concatenations, resizes: one pass over the output."""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.kernel import MAX_LANES, MOVING, Kernel, NotCovered, divisor

PIECES = "nnfarm.pieces"
"""Annotation of a block: the last axis is made of pieces from elsewhere; the number divides the
lengths of all of them."""

MAX_UNROLLED_PIECES = 128
"""Vectors of the last axis that are written out, so that none of them asks where it comes from."""


def schedule_elementwise(kernel: Kernel) -> None:
    """Producers are inlined into the last block, which runs in parallel vectors.

    Raises:
        NotCovered: something reduces.
    """
    if kernel.reductions:
        raise NotCovered("a reduction")
    steps = [kernel.annotation(block, PIECES) for block in kernel.blocks]
    step = math.gcd(*(int(value) for value in steps if value is not None))  # type: ignore[call-overload]
    last = inline_into_last(kernel)
    if step and kernel.extent(kernel.sch.get_loops(last)[-1]) % step == 0:
        _copy_pieces(kernel, last, step)
    else:
        schedule_copy(kernel, last)


def inline_into_last(kernel: Kernel) -> object:
    """Inlines producers of the last block into it, and returns it."""
    *producers, last = kernel.blocks
    for block in producers:
        # What is broadcast is computed once, not for every element that reads it.
        # Not conditions: TVM stores no vectors of bool, and they are cheap.
        is_condition = str(kernel.sch.get(block).writes[0].source.dtype) == "bool"
        is_small = _is_broadcast(kernel, block) and kernel.sch.get_loops(block)
        if is_condition or not is_small:
            kernel.sch.compute_inline(block)
        else:
            schedule_copy(kernel, block)
    return last


def _is_broadcast(kernel: Kernel, block: object) -> bool:
    """Whether what reads a block is larger, and does not put it beside others."""
    size = kernel.size(block)
    return any(
        kernel.size(reader) > size and kernel.annotation(reader, PIECES) is None
        for reader in kernel.sch.get_consumers(block)
    )


def _copy_pieces(kernel: Kernel, block: object, step: int) -> None:
    sch = kernel.sch
    *outer, inner = sch.get_loops(block)
    size = kernel.size(block)
    lanes = math.gcd(step, MAX_LANES)
    vectors, lane = sch.split(inner, [None, lanes])
    sch.vectorize(lane)
    if kernel.extent(vectors) <= MAX_UNROLLED_PIECES and outer:
        sch.unroll(vectors)
    else:
        outer.append(vectors)
    fused = sch.fuse(*outer)
    kernel.share(fused, size * MOVING)


def schedule_padding(kernel: Kernel, block: object) -> None:
    """A producer of a sum: zeros first and then the image, where channels do not fill vectors."""
    sch = kernel.sch
    loops = sch.get_loops(block)
    reads = sch.get(block).reads
    is_narrow = len(loops) == 4 and kernel.extent(loops[3]) % kernel.vectors.lanes
    if not (is_narrow and len(reads) == 1 and is_padding(kernel, block)):
        schedule_copy(kernel, block)
        return
    zeros = sch.decompose_padding(block, loops[0])
    schedule_copy(kernel, zeros)
    _, row, column, channel = sch.get_loops(block)[-4:]
    line = sch.fuse(column, channel)
    lanes = divisor(kernel.extent(line), (MAX_LANES, 8, 4))
    if lanes > 1:
        sch.vectorize(sch.split(line, [None, lanes])[1])
    kernel.share(row, kernel.size(block) * MOVING)


def is_padding(kernel: Kernel, block: object) -> bool:
    """Whether a block copies an image and adds a border to it."""
    body = kernel.sch.get(block).body
    return "if_then_else" in str(getattr(body, "value", ""))


def schedule_copy(kernel: Kernel, block: object) -> None:
    """A block's loops: outer ones in parallel, the innermost in vectors."""
    sch = kernel.sch
    loops = sch.get_loops(block)
    if not loops:
        return
    extents = kernel.extents(loops)
    lanes = kernel.vector_length(extents[-1])
    if lanes == 1 and _is_flat(kernel, block):
        lanes = divisor(math.prod(extents), (MAX_LANES, 8, 4))
        loops = [sch.fuse(*loops)]
    *outer, inner = loops
    rest, vector = sch.split(inner, [None, lanes])
    if lanes > 1:
        sch.vectorize(vector)
    fused = sch.fuse(*outer, rest)
    kernel.share(fused, math.prod(extents) * MOVING)


def _is_flat(kernel: Kernel, block: object) -> bool:
    """Whether every access has the shape of the output, so that the loops are one."""
    region = kernel.sch.get(block)
    shape = list(map(int, region.writes[0].source.shape))
    return all(list(map(int, read.source.shape)) == shape for read in region.reads)
