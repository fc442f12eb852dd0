"""Sums over packed weights: the attributes that tell the register-tile rule what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax, te, tirx

from workers.backends.cpu.schedules.register_tile import CHANNELS, DOT, FLAT, PIXELS, WEIGHT_BYTES
from workers.backends.cpu.tiles import Tile
from workers.backends.cpu.vectors import DotProduct, Vectors
from workers.graph.graph import dtype_of

FUSES_EPILOGUE = {"op_pattern": 4}
"""TVM's kOutEWiseFusable: FuseOps may add element-wise consumers. It cannot see this through the
padding and cropping blocks around the sum."""


IS_ELEMENTWISE = {"op_pattern": 0}
"""kElemWise, of the first operand: may end a kernel or follow a sum in it."""

IS_OPAQUE = {"op_pattern": 8}
"""kOpaque: a kernel by itself."""

FUNCTION = "nnfarm.function"
"""Attribute of a TIR function that is made of polynomials."""

WIDE = "int16"
"""Holds a byte less its zero point, whatever their signs."""


@dataclass(frozen=True)
class Element:
    """What is multiplied and summed.

    Attributes:
        dtype: of products and sums.
        source: dtype of the input.
        zero_point: what stands for zero in the input.
        dot: the instruction that sums, if there is one.
    """

    dtype: str
    source: str = "float32"
    zero_point: int = 0
    dot: DotProduct | None = None

    @property
    def terms(self) -> int:
        """Neighbours along the depth that are summed at once."""
        return 1 if self.dot is None else self.dot.terms

    @property
    def rows(self) -> int:
        """Rows, and channels, whose sums one register holds."""
        return 1 if self.dot is None else self.dot.rows

    @property
    def border(self) -> int:
        """What stands for zero after `widened`."""
        return self.zero_point + self._shift if self._keeps_bytes else 0

    @property
    def _keeps_bytes(self) -> bool:
        return self.dot is not None and self.dot.data != WIDE

    @property
    def _shift(self) -> int:
        if self.dot is None or self.source == self.dot.data:
            return 0
        return 128 if self.source == "int8" else -128

    def widened(self, data: te.Tensor) -> te.Tensor:
        """What the sum reads.

        Floats as they are. Bytes in the sign that the instruction takes, with their zero point;
        without such an instruction, shorts less the zero point.
        """
        if self.dtype.startswith("float"):
            return data
        if self.dot is not None and self._keeps_bytes:
            dtype, shift = self.dot.data, self._shift
            if not shift:
                return data
            offset = tirx.const(shift, WIDE)
            return te.compute(
                data.shape, lambda *at: (data[at].astype(WIDE) + offset).astype(dtype), name="wide"
            )
        # A plain int is an int32 to TVM, and would widen the whole tensor to it.
        zero = tirx.const(self.zero_point, WIDE)
        return te.compute(data.shape, lambda *at: data[at].astype(WIDE) - zero, name="wide")

    def product(self, value: te.PrimExpr, weight: te.PrimExpr) -> te.PrimExpr:
        """One term of a sum."""
        return value.astype(self.dtype) * weight.astype(self.dtype)


FLOAT, HALF = Element("float32"), Element("float16", "float16")
INTEGER_DTYPE = "int32"


def tile_annotations(
    tile: Tile, weight_bytes: int, is_flat: bool, element: Element = FLOAT
) -> dict[str, int | str]:
    """What a block to tile carries."""
    dot = {} if element.dot is None else {DOT: element.dot.intrinsic}
    return dot | {
        PIXELS: tile.pixels,
        CHANNELS: tile.channels,
        FLAT: int(is_flat),
        WEIGHT_BYTES: weight_bytes,
    }


def float_element(call: relax.Call) -> Element | None:
    """What a call multiplies floats as; the sums are float32. None for other types."""
    dtypes = {dtype_of(operand) for operand in call.args}
    if dtype_of(call) != "float32" or len(dtypes) > 1:
        return None
    return {"float32": FLOAT, "float16": HALF}.get(dtypes.pop())


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


def pack_terms(weight: NDArray[Any], channels: int, terms: int) -> NDArray[Any]:
    """Weights packed so that neighbours along the depth are next to each other.

    Args:
        weight: (..., depth, output channels); depth is filled with zeros to whole dot products.
        channels: of a tile.
        terms: of a dot product.

    Returns:
        (tiles, ..., dot products, channels, terms).
    """
    more = -weight.shape[-2] % terms
    padded = np.pad(weight, [(0, 0)] * (weight.ndim - 2) + [(0, more), (0, 0)])
    packed = pack(padded, channels)
    grouped = packed.reshape(*packed.shape[:-2], -1, terms, channels)
    return np.ascontiguousarray(np.swapaxes(grouped, -1, -2))


def stored(weight: NDArray[Any], vectors: Vectors) -> NDArray[Any]:
    """Weights as a library keeps them: float16 where that loses nothing and costs no time.

    Models of half precision, and float ones that were such, are then half as large, too.
    """
    if weight.dtype != np.float32 or not vectors.converts_halves:
        return weight
    with np.errstate(over="ignore"):
        halves = weight.astype(np.float16)
    return halves if np.array_equal(halves.astype(np.float32), weight) else weight


def round_up(value: int, step: int) -> int:
    """The least multiple of `step` that is not below `value`."""
    return -(-value // step) * step
