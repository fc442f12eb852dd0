"""What a kernel likely takes, where nothing can be measured: the points it computes, its bytes."""

from __future__ import annotations

import math

import tvm
from tvm import s_tir, tirx

from workers.backends.cpu.tuned import ENTRY
from workers.tuning.bench import shape_of

_BYTES_A_POINT = 4
"""Bytes that move in the time of one point: a float for each multiply-add."""


def cost_of(function: tirx.PrimFunc) -> int:
    """Of one call, in points; comparable between kernels.

    A point is one execution of a block's body: a multiply-add in a sum, an element elsewhere.

    Args:
        function: not scheduled, of static shapes.
    """
    schedule = s_tir.Schedule(function.with_attr("global_symbol", ENTRY))  # only looked at
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    points = sum(
        math.prod(int(axis.dom.extent) for axis in schedule.get(block).iter_vars)
        for block in blocks
    )
    size_bytes: int = sum(
        math.prod(shape_of(tensor)) * tvm.DataType(str(tensor.dtype)).bits // 8
        for tensor in function.ty.params
    )
    return points + size_bytes // _BYTES_A_POINT
