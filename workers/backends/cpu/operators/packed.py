"""Sums over packed weights: the attributes that tell the register-tile rule what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import te

from workers.backends.cpu.schedules.register_tile import CHANNELS, FLAT, PIXELS, WEIGHT_BYTES
from workers.backends.cpu.tiles import Tile

FUSES_EPILOGUE = {"op_pattern": 4}
"""TVM's kOutEWiseFusable: FuseOps may add element-wise consumers. It cannot see this through the
padding and cropping blocks around the sum."""


IS_ELEMENTWISE = {"op_pattern": 0}
"""kElemWise, of the first operand: may end a kernel or follow a sum in it."""

IS_OPAQUE = {"op_pattern": 8}
"""kOpaque: a kernel by itself."""

WIDE = "int16"
"""Holds a byte less its zero point, whatever their signs."""


@dataclass(frozen=True)
class Element:
    """What is multiplied and summed.

    Attributes:
        dtype: of products and sums.
        zero_point: what stands for zero in the input.
    """

    dtype: str
    zero_point: int = 0

    def widened(self, data: te.Tensor) -> te.Tensor:
        """Bytes less their zero point; floats as they are."""
        if self.dtype == "float32":
            return data
        return te.compute(
            data.shape, lambda *at: data[at].astype(WIDE) - self.zero_point, name="wide"
        )

    def product(self, value: te.PrimExpr, weight: te.PrimExpr) -> te.PrimExpr:
        """One term of a sum."""
        return value.astype(self.dtype) * weight.astype(self.dtype)


FLOAT = Element("float32")
INTEGER_DTYPE = "int32"


def tile_annotations(tile: Tile, weight_bytes: int, is_flat: bool) -> dict[str, int]:
    """What a block to tile carries."""
    return {
        PIXELS: tile.pixels,
        CHANNELS: tile.channels,
        FLAT: int(is_flat),
        WEIGHT_BYTES: weight_bytes,
    }


def pack(weight: NDArray[Any], channels: int) -> NDArray[Any]:
    """Weights in the order the inner loop reads them.

    Args:
        weight: (..., output channels).
        channels: of a tile; the last tile is filled with zeros.

    Returns:
        (tiles, ..., channels).
    """
    count = weight.shape[-1]
    tiles = -(-count // channels)
    widths = [(0, 0)] * (weight.ndim - 1) + [(0, tiles * channels - count)]
    padded = np.pad(weight, widths).reshape(*weight.shape[:-1], tiles, channels)
    return np.ascontiguousarray(np.moveaxis(padded, -2, 0))


def round_up(value: int, step: int) -> int:
    """The least multiple of `step` that is not below `value`."""
    return -(-value // step) * step
