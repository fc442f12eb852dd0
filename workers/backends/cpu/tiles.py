"""Choice of a register tile: output pixels x channels that are summed at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from workers.backends.cpu.vectors import Vectors

MAX_VECTORS = 6
"""Registers of channels in a tile at most."""

MAX_PIXELS = 14
"""Divides the widths of most image networks; every pixel is an unrolled copy of the loop body."""

MULTIPLY_ADDS_PER_CYCLE = 2
LOADS_PER_CYCLE = 2
LATENCY_CYCLES = 4
"""Of a multiply-add. The three are alike on the cores of the last ten years, x86-64 and arm64."""

TILE_CYCLES = 30
"""Zeroing a tile, its epilogue, the loop's own work."""


@dataclass(frozen=True)
class Tile:
    """`pixels` x `vectors` accumulators; `channels` is `vectors` in float32 lanes."""

    pixels: int
    vectors: int
    channels: int


def choose_tile(
    image: tuple[int, int],
    channels: int,
    depth: int,
    vectors: Vectors,
    may_be_flat: bool = True,
    step: int = 1,
) -> tuple[Tile, bool]:
    """The tile with the least modelled time.

    Args:
        image: height and width of the output.
        channels: output channels; padded to whole tiles with zero weights.
        depth: terms of every sum.
        vectors: of the target.
        may_be_flat: whether tiles may run over the ends of rows. TVM cannot put an instruction
            into such a loop.
        step: what the number of pixels is a multiple of.

    Returns:
        The tile, and whether tiles run over the ends of rows. Where they do not, a tile that does
        not divide the width computes some columns for nothing.
    """
    height, width = image
    best: tuple[float, Tile, bool] | None = None
    for count in range(1, MAX_VECTORS + 1):
        lanes = count * vectors.lanes
        for pixels in range(step, min(MAX_PIXELS, max(height * width, step)) + 1, step):
            if not _fits(pixels, count, vectors):
                break
            is_flat = may_be_flat and width % pixels != 0 and pixels % width == 0
            is_flat = is_flat and height * width % pixels == 0
            if not is_flat and pixels > -(-width // step) * step:
                continue
            rows = height * width // pixels if is_flat else height * -(-width // pixels)
            tiles = rows * -(-channels // lanes)
            cycles = tiles * (_cycles(pixels, count) * depth + TILE_CYCLES)
            # Of equal ones the one with more channels: fewer passes over the input.
            if best is None or cycles <= best[0]:
                best = (cycles, Tile(pixels, count, lanes), is_flat)
    assert best is not None  # a step of pixels and one vector always fit
    return best[1], best[2]


def _fits(pixels: int, count: int, vectors: Vectors) -> bool:
    temporaries = 1 if vectors.folds_loads else 2  # a broadcast pixel; a product or a second one
    return pixels * count + count + temporaries <= vectors.registers - 2


def _cycles(pixels: int, count: int) -> float:
    """Cycles a term of the sums takes."""
    products = pixels * count / MULTIPLY_ADDS_PER_CYCLE
    loads = (pixels + count) / LOADS_PER_CYCLE
    return max(products, loads, LATENCY_CYCLES)
