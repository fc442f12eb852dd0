"""A transposed convolution as a plain one whose channels are the pixels between the input's.

With strides (s, t) an output pixel (q * s + r, ...) reads input pixels around q by the part of the
window that meets r. So the s * t kinds of output pixels are so many convolutions of stride one;
side by side as output channels they are one, and a rearrangement puts the pixels into their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Phases:
    """Height or width: for every remainder, which window pixel reads which input pixel.

    Attributes:
        taps: (remainder, window pixel, distance of the input pixel from q).
        stride: number of remainders.
    """

    taps: tuple[tuple[int, int, int], ...]
    stride: int

    @classmethod
    def of(cls, window: int, stride: int, before: int) -> Phases:
        """The axis of a window over an image with so many rows cut off before it."""
        return cls(
            tuple(
                (rest, tap, (rest + before - tap) // stride)
                for rest in range(stride)
                for tap in range(window)
                if (rest + before - tap) % stride == 0
            ),
            stride,
        )

    @property
    def first(self) -> int:
        """Distance of the first input pixel that is read."""
        return min(distance for *_, distance in self.taps)

    @property
    def size(self) -> int:
        """Window of the convolution."""
        return max(distance for *_, distance in self.taps) - self.first + 1

    def steps(self, outputs: int) -> int:
        """Pixels of the convolution's result for so many of the transposed one's."""
        return -(-outputs // self.stride)

    def padding(self, inputs: int, outputs: int) -> tuple[int, int]:
        """Border before and behind; negative where the image's edge is not read."""
        return -self.first, self.steps(outputs) + self.size - 1 + self.first - inputs


def plain_weights(
    weight: NDArray[Any], groups: int, axes: Sequence[Phases], nothing: int = 0
) -> NDArray[Any]:
    """Weights of the plain convolution.

    Args:
        weight: IOHW.
        groups: of the convolution, first part of I.
        axes: height and width.
        nothing: what stands for a weight of 0, a zero point.

    Returns:
        (window height, window width, inputs of a group, groups x remainders x channels).
    """
    inputs, channels = weight.shape[0] // groups, weight.shape[1]
    rows, columns = axes
    split = weight.reshape(groups, inputs, *weight.shape[1:])
    shape = (rows.size, columns.size, inputs, groups, rows.stride, columns.stride, channels)
    plain = np.full(shape, nothing, weight.dtype)
    for r, y, dy in rows.taps:
        for c, x, dx in columns.taps:
            at = plain[dy - rows.first, dx - columns.first]
            at[:, :, r, c] = split[..., y, x].transpose(1, 0, 2)
    return plain.reshape(rows.size, columns.size, inputs, -1)
