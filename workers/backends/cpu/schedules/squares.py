"""A tile of squares: rows x channels that one instruction multiplies."""

from __future__ import annotations

from workers.backends.cpu.schedules.dot_product import square_intrinsic
from workers.backends.cpu.schedules.kernel import Kernel
from workers.backends.cpu.vectors import DotProduct


def split_squares(
    kernel: Kernel, loops: list[object], pixels: int, channels: int, side: int
) -> tuple[list[object], list[object], list[object]]:
    """Splits the spatial loops of a block that `operators.squares.sums_of` made.

    Args:
        kernel: of the block.
        loops: spatial ones.
        pixels: of a tile, as `channels`.
        channels: whole squares of both.
        side: of a square.

    Returns:
        The outer loops, those over tiles of rows and of channels, and those within a tile.
    """
    sch = kernel.sch
    *outer, row, channel, below, beside = loops
    row_tiles, row_inner = sch.split(row, [None, pixels // side])
    tiles, channel_inner = sch.split(channel, [None, channels // side])
    sch.unroll(channel_inner)
    sch.unroll(row_inner)
    return outer, [row_tiles, tiles], [row_inner, channel_inner, below, beside]


def use_squares(kernel: Kernel, block: object, zero: object, dot: DotProduct) -> None:
    """Puts the instruction in place of the three innermost loops."""
    sch = kernel.sch
    sch.vectorize(sch.fuse(*sch.get_loops(zero)[-2:]))
    sch.tensorize(sch.get_loops(block)[-3], square_intrinsic(dot))
