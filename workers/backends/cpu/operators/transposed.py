"""conv2d_transpose as a plain convolution whose channels are the pixels between the input's.

With strides (s, t) an output pixel (q * s + r, ...) reads input pixels around q by the part of the
window that meets r. So the s * t kinds of output pixels are so many convolutions of stride one;
side by side as output channels they are one, and a copy puts the pixels into their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax, te, topi

from workers.backends.cpu.operators.convolution import convolution
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, dtype_of, static_shape


@dataclass(frozen=True)
class _Axis:
    """Height or width: for every remainder, which window pixel reads which input pixel.

    Attributes:
        taps: (remainder, window pixel, distance of the input pixel from q).
        stride: number of remainders.
    """

    taps: tuple[tuple[int, int, int], ...]
    stride: int

    @classmethod
    def of(cls, window: int, stride: int, before: int) -> _Axis:
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

    def padding(self, inputs: int, outputs: int) -> tuple[int, int]:
        """Border before and behind; negative where the image's edge is not read."""
        steps = -(-outputs // self.stride)
        return -self.first, steps + self.size - 1 + self.first - inputs


def conv2d_transpose(
    builder: relax.BlockBuilder, call: relax.Call, vectors: Vectors
) -> relax.Expr | None:
    """Lowers a transposed convolution of constant weights, in the NCHW order it arrives in."""
    attrs, weight = call.attrs, constant_value(call.args[1])
    image, output = static_shape(call.args[0]), static_shape(call)
    is_ours = attrs.data_layout == "NCHW" and attrs.kernel_layout == "IOHW"
    if not is_ours or weight is None or image is None or output is None:
        return None
    if dtype_of(call) != "float32" or any(int(step) != 1 for step in attrs.dilation):
        return None
    strides, padding = (tuple(map(int, values)) for values in (attrs.strides, attrs.padding))
    axes = [_Axis.of(weight.shape[2 + i], strides[i], padding[i]) for i in (0, 1)]
    rows, columns = (axes[i].padding(image[2 + i], output[2 + i]) for i in (0, 1))
    groups = int(attrs.groups)
    plain = relax.op.nn.conv2d(
        builder.emit_te(topi.transpose, call.args[0], (0, 2, 3, 1)),
        relax.const(_weights(weight, groups, axes)),
        padding=(rows[0], columns[0], rows[1], columns[1]),
        groups=groups,
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    lowered = convolution(builder, builder.normalize(plain), vectors)
    if lowered is None:
        return None
    shape = (output, strides, groups)
    return builder.call_te(
        _placed, builder.emit(lowered), *shape, primfunc_name_hint="conv2d_transpose"
    )


def _weights(weight: NDArray[Any], groups: int, axes: list[_Axis]) -> NDArray[Any]:
    """(window height, window width, depth, groups x remainders x channels) from IOHW."""
    inputs, channels = weight.shape[0] // groups, weight.shape[1]
    rows, columns = axes
    split = weight.reshape(groups, inputs, *weight.shape[1:])
    shape = (rows.size, columns.size, inputs, groups, rows.stride, columns.stride, channels)
    plain = np.zeros(shape, weight.dtype)
    for r, y, dy in rows.taps:
        for c, x, dx in columns.taps:
            at = plain[dy - rows.first, dx - columns.first]
            at[:, :, r, c] = split[..., y, x].transpose(1, 0, 2)
    return plain.reshape(rows.size, columns.size, inputs, -1)


def _placed(
    total: te.Tensor, output: tuple[int, ...], strides: tuple[int, int], groups: int
) -> te.Tensor:
    """NCHW image from the convolution's NHWC one."""
    (sy, sx), per_group = strides, output[1] // groups

    def pixel(n: te.Var, c: te.Var, y: te.Var, x: te.Var) -> te.PrimExpr:
        kind = (c // per_group * sy + y % sy) * sx + x % sx
        return total[n, y // sy, x // sx, kind * per_group + c % per_group]

    return te.compute(output, pixel, name="conv2d_transpose_place")
