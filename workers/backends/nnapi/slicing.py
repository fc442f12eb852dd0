"""Slices as STRIDED_SLICE has them."""

from __future__ import annotations

from collections.abc import Mapping

from workers.backends.nnapi.builder import ModelBuilder


def add_slice(
    builder: ModelBuilder, source: int, output: int, cuts: Mapping[int, slice[int, int, int]]
) -> None:
    """Append the slice of a tensor.

    Args:
        builder: of the model.
        source: operand.
        output: operand of the result.
        cuts: what to take along an axis, in Python's sense; all of it along others.
    """
    shape = builder.shape(source)
    begins, ends, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, cut in cuts.items():
        size = shape[axis]
        begin, end, step = cut.indices(size)
        # Going backwards the end may lie before the first element; -1 would be the last one.
        begins[axis], ends[axis], strides[axis] = begin, end if end >= 0 else -size - 1, step
    zero = builder.int32(0)
    builder.add(
        "STRIDED_SLICE",
        output,
        input=source,
        begins=builder.int32s(begins),
        ends=builder.int32s(ends),
        strides=builder.int32s(strides),
        begin_mask=zero,
        end_mask=zero,
        shrink_axis_mask=zero,
    )
