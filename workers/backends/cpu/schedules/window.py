"""Depthwise convolution and pooling: every channel is summed over a window by itself."""

from __future__ import annotations

import math

from workers.backends.cpu.schedules.elementwise import (
    is_padding,
    schedule_copy,
    schedule_padding,
)
from workers.backends.cpu.schedules.kernel import Kernel, NotCovered, divisor

PIXEL_TILES = (4, 7, 5, 3, 2, 6)
"""Neighbouring output pixels that share what they read."""

MAX_UNROLLED_WINDOW = 25
"""5 x 5. A global pool's window is the whole image."""


def schedule_window(kernel: Kernel) -> None:
    """Schedules a kernel around one reduction over a window of an NHWC image.

    Raises:
        NotCovered: it is not one, or the channels do not fill vectors.
    """
    sch = kernel.sch
    if len(kernel.reductions) != 1:
        raise NotCovered("not one reduction")
    (block,) = kernel.reductions
    spatial, reduced = kernel.axes(block)
    if spatial != 4 or reduced != 2:
        raise NotCovered("not a window of an image")
    batch, height, width, channel, *window = sch.get_loops(block)
    lanes = divisor(kernel.extent(channel), _lanes(kernel))
    if lanes == 1:
        raise NotCovered("channels do not fill vectors")
    epilogue, broadcast = kernel.inline_consumers(block)
    for producer in kernel.producers(block):
        _feed(kernel, producer)
    if broadcast is not None:
        schedule_copy(kernel, broadcast)
    work = math.prod(kernel.extents(sch.get_loops(block)))
    size = math.prod(kernel.extents(window))
    pixels = divisor(kernel.extent(width), PIXEL_TILES) if size > 1 else 1
    width_outer, width_inner = sch.split(width, [None, pixels])
    channel_outer, lane = sch.split(channel, [None, lanes])
    sch.reorder(batch, height, width_outer, channel_outer, *window, width_inner, lane)
    writer = sch.cache_write(block, 0, "local") if epilogue is None else epilogue
    sch.reverse_compute_at(writer, channel_outer, preserve_unit_loops=True)
    if epilogue is not None:
        sch.set_scope(block, 0, "local")
    *_, row, column = sch.get_loops(writer)
    sch.vectorize(column)
    sch.unroll(row)
    sch.vectorize(lane)
    sch.unroll(width_inner)
    if size <= MAX_UNROLLED_WINDOW:
        for loop in window:
            sch.unroll(loop)
    is_image = kernel.extent(height) > 1
    fused = sch.fuse(*sch.get_loops(block)[: 2 if is_image else 4])
    kernel.share(fused, work)
    sch.decompose_reduction(block, sch.get_loops(block)[3 if is_image else 1])


def _feed(kernel: Kernel, producer: object) -> None:
    """A border is asked for at every load, which is less than a padded copy of the image.

    Not where channels are added, too: then every lane would ask.
    """
    source = kernel.sch.get(producer).reads[0].source
    padded = kernel.sch.get(producer).writes[0].source
    if is_padding(kernel, producer) and int(source.shape[-1]) == int(padded.shape[-1]):
        kernel.sch.compute_inline(producer)
    else:
        schedule_padding(kernel, producer)


def _lanes(kernel: Kernel) -> tuple[int, ...]:
    native = kernel.vectors.lanes
    return tuple(n for n in (2 * native, native, 8, 4) if n <= 2 * native)
