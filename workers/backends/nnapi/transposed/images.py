"""Images whose pixels may still stand among their channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import static_shape
from workers.graph.quantization import Quantization

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""NHWC from NCHW, and back."""

Emit = Callable[[relax.Expr], relax.Expr]


@dataclass(frozen=True)
class Image:
    """A value of the new graph in NHWC, its pixels perhaps still among its channels.

    Attributes:
        value: NHWC; a quantized one as integers or as real numbers.
        kinds: rows and columns of pixels that stand among the channels, the outer part of them.
        shape: NHWC of the image that it is.
        numbers: of a tensor that is quantized.
    """

    value: relax.Expr
    kinds: tuple[int, int]
    shape: tuple[int, int, int, int]
    numbers: Quantization | None = None

    @property
    def first_shape(self) -> tuple[int, ...]:
        """NCHW of the image."""
        return tuple(self.shape[axis] for axis in TO_FIRST)

    def beside(self, array: NDArray[np.generic]) -> relax.Expr | None:
        """A constant of the NCHW image as one of the value; None unless it is one a channel."""
        padded = array.reshape((1,) * (4 - array.ndim) + array.shape)
        if array.size not in (1, self.shape[3]) or padded.shape[1] != array.size:
            return None
        if array.size != self.shape[3]:
            return relax.const(array.reshape(()), array.dtype.name)
        channels = np.tile(array.reshape(-1), self.kinds[0] * self.kinds[1])
        return relax.const(channels.reshape(1, 1, 1, -1), array.dtype.name)


def placed(emit: Emit, value: relax.Expr, image: Image) -> relax.Expr:
    """Bind a value of an image with the pixels in their places, those behind its edge cut off."""
    rows, columns = image.kinds
    images, height, width, _ = static_shape(value) or ()
    channels = image.shape[3]
    whole = (images, height * rows, width * columns, channels)
    pieces: tuple[int, ...] = (images * height, width, rows, columns * channels)
    order: tuple[int, ...] = (0, 2, 1, 3)
    if rows == columns:  # as DEPTH_TO_SPACE is recognized
        pieces, order = (images, height, width, rows, rows, channels), (0, 1, 3, 2, 4, 5)
    if rows > 1 or columns > 1:
        apart = emit(relax.op.reshape(value, pieces))
        value = emit(relax.op.reshape(emit(relax.op.permute_dims(apart, order)), whole))
    if whole == image.shape:
        return value
    return emit(relax.op.strided_slice(value, [1, 2], [0, 0], image.shape[1:3], [1, 1]))
