"""Parts of a float16 sum: a tile of registers inside of the tile of float32 sums."""

from __future__ import annotations

from tvm import tirx

from workers.backends.cpu.schedules.kernel import Kernel

PART = "nnfarm.part_of_sum"
"""Annotation of a block whose results are added up by the annotated one behind it."""


def schedule_parts(kernel: Kernel, part: object, loop: object) -> None:
    """Computes each part where it is added.

    Args:
        kernel: of the blocks.
        part: the block.
        loop: over the parts, of the block that adds them up, tiled already.
    """
    sch = kernel.sch
    sch.compute_at(part, loop, preserve_unit_loops=True)
    sch.set_scope(part, 0, "local")
    axes = sch.get(part).iter_vars
    loops = sch.get_loops(part)[-len(axes) :]
    summed = [at for at, axis in zip(loops, axes, strict=True) if _is_summed(axis)]
    *rows, channel, number = [at for at in loops if not any(at.same_as(one) for one in summed)]
    lanes = kernel.vectors.of(str(sch.get(part).writes[0].source.dtype)).lanes
    vector, lane = sch.split(channel, [None, lanes])
    sch.reorder(number, *summed, *rows, vector, lane)
    sch.vectorize(lane)
    for at in (*rows, vector):
        sch.unroll(at)
    sch.decompose_reduction(part, summed[0])


def _is_summed(axis: tirx.IterVar) -> bool:
    return bool(axis.iter_type == tirx.IterVar.CommReduce)
