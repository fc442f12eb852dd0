"""How a convolution moves over an NHWC image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray
from tvm import relax, te, tirx, topi

from workers.graph.graph import static_shape


@dataclass(frozen=True)
class Window:
    """Strides, dilation and border of a convolution.

    Attributes:
        output: batch, height, width of the output.
        strides: along height and width, as is the dilation.
        dilation: distance of neighbouring pixels of the window.
        padding: top, left, bottom, right; negative where the image's edge is not read.
    """

    output: tuple[int, int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]

    @classmethod
    def of(cls, call: relax.Call) -> Window:
        """The window of a convolution of static shape."""
        output, attrs = static_shape(call), call.attrs
        assert output is not None  # whoever asks has looked
        strides, dilation, padding = (
            tuple(map(int, values)) for values in (attrs.strides, attrs.dilation, attrs.padding)
        )
        return cls(output[:3], strides, dilation, padding)  # type: ignore[arg-type]

    def padded(
        self, image: te.Tensor, more_channels: int = 0, zero: int = 0, more_columns: int = 0
    ) -> te.Tensor:
        """The image with its border of `zero`; no copy where there is none."""
        top, left, bottom, right = (max(size, 0) for size in self.padding)
        right += more_columns
        if not any((top, left, bottom, right)) and not more_channels:
            return image
        after = (0, bottom, right, more_channels)
        value = tirx.const(zero, image.dtype)
        return topi.nn.pad(image, (0, top, left, 0), after, pad_value=value, name="pad")

    def source(self, y: te.Var, x: te.Var, ky: te.Var, kx: te.Var) -> tuple[te.Var, te.Var]:
        """Pixel of the padded image for an output pixel and a window pixel."""
        (sy, sx), (dy, dx) = self.strides, self.dilation
        skipped = [max(-size, 0) for size in self.padding[:2]]
        return y * sy + ky * dy + skipped[0], x * sx + kx * dx + skipped[1]

    def trimmed(self, weight: NDArray[Any], image: tuple[int, int]) -> tuple[Window, NDArray[Any]]:
        """The same convolution without rows and columns of the window that see only the border.

        Widely dilated windows over small images (atrous pyramids) are mostly such.

        Args:
            weight: (window height, window width, depth, channels).
            image: height and width of the input.
        """
        padding = list(self.padding)
        for axis in (0, 1):
            size, step = weight.shape[axis], self.dilation[axis]
            last = (self.output[1 + axis] - 1) * self.strides[axis]
            start = padding[axis]
            seen = [
                tap
                for tap in range(size)
                if last + tap * step >= start and tap * step < start + image[axis]
            ]
            if not seen or len(seen) == size:
                continue
            weight = (
                weight[seen[0] : seen[-1] + 1] if axis == 0 else weight[:, seen[0] : seen[-1] + 1]
            )
            padding[axis] -= seen[0] * step
            padding[2 + axis] -= (size - 1 - seen[-1]) * step
        top, left, bottom, right = padding
        return replace(self, padding=(top, left, bottom, right)), weight
