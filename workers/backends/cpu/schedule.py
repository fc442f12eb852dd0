"""A fixed schedule for CPU kernels: register tiles, vector lanes, parallel outer loops.

TVM's own CPU lowering leaves every kernel a scalar loop nest on one thread. Two rules that need no
tuning take most of the distance: one for kernels around one reduction (convolution, matmul, pools)
and one for element-wise kernels. A kernel that fits neither keeps its loops and is named.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import tvm
from tvm import s_tir, tirx

logger = logging.getLogger(__name__)

LANES = (16, 8, 4)
"""Innermost loop lengths to try, longest first; LLVM splits them into the target's registers."""

PIXEL_TILES = (7, 8, 6, 4, 5, 3, 2)
"""Output pixels kept in registers for a reduction over channels; 7 x 16 floats fit most targets."""

DEPTHWISE_PIXEL_TILES = (7, 4, 2)

MAX_UNROLLED_WINDOW = 25
"""Window pixels unrolled at most: 5 x 5. A global pool's window is the whole image."""

MIN_PARALLEL_ELEMENTS = 4096
"""Below it, starting threads costs more than it saves."""

PARALLEL_CHUNKS = (8, 4, 2)


class NotCovered(Exception):  # noqa: N818 - an answer, not an error
    """No rule fits the kernel."""


def schedule(module: tvm.IRModule) -> tuple[tvm.IRModule, tuple[str, ...]]:
    """Schedule every TIR function of a module.

    Args:
        module: legalised and fused; TIR functions have static shapes or are left alone.

    Returns:
        The module, and names of the functions that no rule covered.
    """
    uncovered: list[str] = []
    scheduled = tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions.items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        try:
            scheduled.update_func(variable, _schedule_function(function))
        except (NotCovered, s_tir.ScheduleError) as reason:
            logger.info("no CPU schedule for %s: %s", variable.name_hint, reason)
            uncovered.append(variable.name_hint)
    return scheduled, tuple(uncovered)


def _schedule_function(function: tirx.PrimFunc) -> tirx.PrimFunc:
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    sch = s_tir.Schedule(module)
    blocks = list(sch.get_child_blocks(sch.get_sblock("root")))
    reductions = [block for block in blocks if _axes(sch, block)[1]]
    if not reductions:
        _elementwise(sch, blocks)
    elif len(reductions) == 1:
        _reduction(sch, blocks, reductions[0])
    else:
        raise NotCovered(f"{len(reductions)} reductions")
    result = sch.mod["main"]
    for key, value in function.attrs.items():
        result = result.with_attr(key, value)
    if "global_symbol" not in function.attrs:
        result = result.without_attr("global_symbol")
    return result.with_attr("tirx.is_scheduled", True)


def _axes(sch: s_tir.Schedule, block: object) -> tuple[list[object], list[object]]:
    """Spatial and reduction axes of a block."""
    spatial, reduced = [], []
    for axis in sch.get(block).iter_vars:
        kind = int(axis.iter_type)
        if kind == tirx.IterVar.DataPar:
            spatial.append(axis)
        elif kind == tirx.IterVar.CommReduce:
            reduced.append(axis)
        else:
            raise NotCovered("an opaque axis")
    return spatial, reduced


def _extent(sch: s_tir.Schedule, loop: object) -> int:
    extent = sch.get(loop).extent
    if not isinstance(extent, int | tirx.IntImm):
        raise NotCovered("a loop of unknown length")
    return int(extent)


def _divisor(extent: int, candidates: Sequence[int]) -> int:
    return next((c for c in candidates if extent % c == 0), 1)


def _elementwise(sch: s_tir.Schedule, blocks: Sequence[object]) -> None:
    """One flat loop: parallel chunks of vectors."""
    *producers, last = blocks
    for block in producers:
        sch.compute_inline(block)
    loops = sch.get_loops(last)
    if not loops:
        raise NotCovered("a scalar")
    count = math.prod(_extent(sch, loop) for loop in loops)
    lanes = _divisor(count, LANES)
    flat = sch.fuse(*loops)
    outer, inner = sch.split(flat, [None, lanes])
    if lanes > 1:
        sch.vectorize(inner)
    if count >= MIN_PARALLEL_ELEMENTS:
        chunks = _divisor(count // lanes, PARALLEL_CHUNKS)
        parallel, _ = sch.split(outer, [chunks, None])
        sch.parallel(parallel)


def _reduction(sch: s_tir.Schedule, blocks: Sequence[object], reduction: object) -> None:
    """A tile of pixels x channels in registers, summed over the reduction, then the epilogue."""
    position = next(
        i for i, block in enumerate(blocks) if sch.get(block).same_as(sch.get(reduction))
    )
    for block in blocks[:position]:
        _materialise(sch, block)
    epilogue = list(blocks[position + 1 :])
    while len(epilogue) > 1:
        sch.compute_inline(epilogue.pop(0))
    _tile(sch, reduction, epilogue)


def _materialise(sch: s_tir.Schedule, block: object) -> None:
    """Padding of the input: copied once, in parallel and vectorised, not in the inner loop."""
    loops = sch.get_loops(block)
    if len(loops) < 2:
        raise NotCovered("a producer without outer loops")
    lanes = _divisor(_extent(sch, loops[-1]), LANES)
    if lanes > 1:
        _, inner = sch.split(loops[-1], [None, lanes])
        sch.vectorize(inner)
    sch.parallel(sch.fuse(*loops[:-1]))


def _tile(sch: s_tir.Schedule, reduction: object, epilogue: Sequence[object]) -> None:
    spatial, reduced = _axes(sch, reduction)
    loops = sch.get_loops(reduction)
    outer_loops, (row, channel) = loops[: len(spatial) - 2], loops[len(spatial) - 2 : len(spatial)]
    summed = loops[len(spatial) :]
    if len(spatial) < 2 or len(loops) != len(spatial) + len(reduced):
        raise NotCovered("fewer than two spatial axes")
    # A reduction over a window only (depthwise, pool) reads each channel by itself: its channel
    # tiles go innermost of the outer loops, so that neighbouring pixels stay in the cache.
    is_window = len(reduced) == 2 and len(spatial) >= 4
    lanes = _divisor(_extent(sch, channel), LANES)
    if lanes == 1:
        raise NotCovered("a channel count without a vector divisor")
    tiles = DEPTHWISE_PIXEL_TILES if is_window else PIXEL_TILES
    pixels = _divisor(_extent(sch, row), tiles)
    channel_outer, channel_inner = sch.split(channel, [None, lanes])
    row_outer, row_inner = sch.split(row, [None, pixels])
    if is_window:
        sch.reorder(*outer_loops, row_outer, channel_outer, *summed, row_inner, channel_inner)
        parallel_count, anchor = len(outer_loops) + 1, channel_outer
    else:
        sch.reorder(*outer_loops, channel_outer, row_outer, *summed, row_inner, channel_inner)
        parallel_count, anchor = len(outer_loops) + 1, row_outer
    _store(sch, reduction, epilogue, anchor)
    inner = sch.get_loops(reduction)
    sch.vectorize(inner[-1])
    sch.unroll(inner[-2])
    window = inner[-4:-2]
    if is_window and math.prod(_extent(sch, loop) for loop in window) <= MAX_UNROLLED_WINDOW:
        for loop in window:
            sch.unroll(loop)
    sch.parallel(sch.fuse(*sch.get_loops(reduction)[:parallel_count]))
    # Loops now: parallel, anchor, sums...: zero the tile before the sums.
    sch.decompose_reduction(reduction, sch.get_loops(reduction)[2])


def _store(
    sch: s_tir.Schedule, reduction: object, epilogue: Sequence[object], anchor: object
) -> None:
    """Keep the tile in local memory; the epilogue (bias, activation) writes it out."""
    if epilogue:
        writer = epilogue[0]
        sch.reverse_compute_at(writer, anchor, preserve_unit_loops=True)
        sch.set_scope(reduction, 0, "local")
    else:
        writer = sch.cache_write(reduction, 0, "local")
        sch.reverse_compute_at(writer, anchor, preserve_unit_loops=True)
    depth = next(
        i
        for i, loop in enumerate(sch.get_loops(reduction))
        if sch.get(loop).same_as(sch.get(anchor))
    )
    tail = sch.get_loops(writer)[depth + 1 :]
    sch.vectorize(tail[-1])
    if len(tail) > 1:
        sch.unroll(tail[-2])
