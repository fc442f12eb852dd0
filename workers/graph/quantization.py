"""Quantization parameters of tensors in a graph in QDQ form.

A quantized model, wherever it comes from, is a float graph with `relax.quantize` and
`relax.dequantize` around each operation: the float operation between the two, and the integers
and their parameters outside, are what an integer kernel computes in one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape

QUANTIZE = "relax.quantize"
DEQUANTIZE = "relax.dequantize"


@dataclass(frozen=True)
class Quantization:
    """How integers stand for real numbers: real = scale * (integer - zero_point).

    Attributes:
        dtype: element type of the integers.
        scales: one, or one a channel.
        zero_points: as many as scales.
        axis: the channels' axis; None where one scale serves the whole tensor.
    """

    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale serves the whole tensor."""
        return self.axis is None

    @property
    def scale(self) -> float:
        """The scale of a tensor that has one."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The zero point of a tensor that has one."""
        (zero_point,) = self.zero_points
        return zero_point

    def dequantize(self, array: NDArray[Any]) -> NDArray[np.float32]:
        """Real values of integers."""
        shape = [1] * array.ndim
        if self.axis is not None:
            shape[self.axis] = -1
        scale = np.array(self.scales, np.float32).reshape(shape if self.axis is not None else ())
        zero = np.array(self.zero_points, np.int64).reshape(scale.shape)
        real: NDArray[np.float32] = (array.astype(np.int64) - zero).astype(np.float32) * scale
        return real


def quantization_of(call: relax.Call) -> Quantization | None:
    """Parameters of a quantize or dequantize call; None where they are not constant."""
    scale, zero_point = constant_value(call.args[1]), constant_value(call.args[2])
    integers = call if call.op.name == QUANTIZE else call.args[0]
    if scale is None or zero_point is None:
        return None
    scales = tuple(float(s) for s in scale.reshape(-1))
    zeros = tuple(int(z) for z in zero_point.reshape(-1))
    if len(zeros) == 1:
        zeros *= len(scales)
    if len(zeros) != len(scales):
        return None
    if len(scales) == 1:
        return Quantization(dtype_of(integers), scales, zeros, None)
    rank = len(static_shape(integers) or ())
    return Quantization(dtype_of(integers), scales, zeros, int(call.attrs.axis) % max(rank, 1))


def parameters(quantization: Quantization) -> tuple[relax.Expr, relax.Expr]:
    """Scale and zero point as the operands quantize and dequantize take."""
    shape = () if quantization.axis is None else (-1,)
    scale = np.array(quantization.scales, np.float32).reshape(shape)
    zero = np.array(quantization.zero_points, quantization.dtype).reshape(shape)
    return relax.const(scale, "float32"), relax.const(zero, quantization.dtype)


def quantize(data: relax.Expr, quantization: Quantization) -> relax.Call:
    """A quantize call with these parameters."""
    scale, zero = parameters(quantization)
    axis = -1 if quantization.axis is None else quantization.axis
    return relax.op.quantize(data, scale, zero, axis, quantization.dtype)


def dequantize(data: relax.Expr, quantization: Quantization) -> relax.Call:
    """A dequantize call with these parameters."""
    scale, zero = parameters(quantization)
    axis = -1 if quantization.axis is None else quantization.axis
    return relax.op.dequantize(data, scale, zero, axis, "float32")
