"""Windows over NHWC images: strides, paddings and dilation as NNAPI wants them."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax


@dataclass(frozen=True)
class Window:
    """A sliding window with explicit padding, in pixels."""

    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    pad_top: int
    pad_left: int
    pad_bottom: int
    pad_right: int

    @property
    def is_dilated(self) -> bool:
        """Whether any dilation is not 1."""
        return (self.dilation_height, self.dilation_width) != (1, 1)

    @property
    def is_padded(self) -> bool:
        """Whether any padding is not 0."""
        return any((self.pad_top, self.pad_left, self.pad_bottom, self.pad_right))

    def grown_to(self, image: tuple[int, int], output: tuple[int, int]) -> Window:
        """The window padded at the bottom and right so that exactly `output` comes out.

        A pool with ceil_mode covers pixels behind the image; NNAPI has no such mode, but leaves
        padding out of maxima and averages, so explicit padding says the same.
        """
        needed_height = (output[0] - 1) * self.stride_height + self.kernel_height
        needed_width = (output[1] - 1) * self.stride_width + self.kernel_width
        return Window(
            self.kernel_height,
            self.kernel_width,
            self.stride_height,
            self.stride_width,
            self.dilation_height,
            self.dilation_width,
            self.pad_top,
            self.pad_left,
            max(self.pad_bottom, needed_height - image[0] - self.pad_top),
            max(self.pad_right, needed_width - image[1] - self.pad_left),
        )

    def pads(self) -> dict[str, int]:
        """Values of NNAPI's padding roles."""
        return {
            "pad_left": self.pad_left,
            "pad_right": self.pad_right,
            "pad_top": self.pad_top,
            "pad_bottom": self.pad_bottom,
        }

    def strides(self) -> dict[str, int]:
        """Values of NNAPI's stride roles."""
        return {"stride_width": self.stride_width, "stride_height": self.stride_height}


def window_of(call: relax.Call, kernel: tuple[int, int]) -> Window:
    """The window of a relax.nn.conv2d or pool (padding order top, left, bottom, right)."""
    attrs = call.attrs
    top, left, bottom, right = (int(p) for p in attrs.padding)
    return Window(
        kernel[0],
        kernel[1],
        int(attrs.strides[0]),
        int(attrs.strides[1]),
        int(attrs.dilation[0]),
        int(attrs.dilation[1]),
        top,
        left,
        bottom,
        right,
    )
