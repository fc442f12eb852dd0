"""Sums in squares of rows and channels, the way instructions for small matrices give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import te


def sums_of(
    shape: Sequence[int],
    term: Callable[..., te.PrimExpr],
    side: int,
    name: str,
    attrs: Mapping[str, int | str],
) -> te.Tensor:
    """The sums (..., rows, channels), or the squares that they make.

    Args:
        shape: of the sums; with squares, whole ones.
        term: the sum at a place.
        side: rows and channels of a square; 1: no squares.
        name: of the block.
        attrs: of the block.

    Returns:
        The sums, or (..., rows of squares, columns of squares, side, side).
    """
    if side == 1:
        return te.compute(shape, term, name=name, attrs=attrs)
    *outer, rows, channels = shape

    def at_square(*at: te.Var) -> te.PrimExpr:
        *before, row, channel, below, beside = at
        return term(*before, row * side + below, channel * side + beside)

    squares = (*outer, rows // side, channels // side, side, side)
    return te.compute(squares, at_square, name=name, attrs=attrs)


def place_of(at: Sequence[te.Var], side: int) -> tuple[te.PrimExpr, ...]:
    """Where `sums_of` has the sum of a place."""
    if side == 1:
        return tuple(at)
    *before, row, channel = at
    return (*before, row // side, channel // side, row % side, channel % side)
