"""Sums of products of float16, in parts that lose no digits to each other.

A float16 sum of thousands of products is wrong by a hundredth of the largest one. Here float16 only
holds sums of a few dozen of them; those are added up in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import te

from workers.backends.cpu.schedules.half_sums import PART

MAX_TERMS = 96
"""Products of a part. A part costs two conversions and additions for each register."""


def count_of_parts(depth: int, taps: int) -> int:
    """Equal parts that the depth of a sum is cut into.

    Args:
        depth: terms along the axis that is cut.
        taps: terms for each of these.
    """
    counts = (n for n in range(1, depth + 1) if depth % n == 0)
    return next((n for n in counts if depth // n * taps <= MAX_TERMS), depth)


def sums_in_parts(
    shape: Sequence[int],
    term: Callable[..., te.PrimExpr],
    count: int,
    name: str,
    attrs: Mapping[str, int | str],
) -> te.Tensor:
    """The float32 sums of a shape.

    Args:
        shape: of the sums.
        term: the float16 sum of the part with a number, at a place.
        count: of parts.
        name: of the block.
        attrs: of the block.
    """
    parts = te.compute(
        (*shape, count),
        lambda *at: term(at[-1], *at[:-1]),
        name=f"{name}_part",
        attrs={PART: 1},
    )
    number = te.reduce_axis((0, count), "part")
    return te.compute(
        shape,
        lambda *at: te.sum(parts[(*at, number)].astype("float32"), axis=number),
        name=name,
        attrs=attrs,
    )
