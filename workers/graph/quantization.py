"""Quantization parameters of tensors in a graph in QDQ form.

A quantized model, wherever it comes from, is a float graph with `relax.quantize` and
`relax.dequantize` around each operation: the float operation between the two, and the integers
and their parameters outside, are what an integer kernel computes in one step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import Graph, constant_value, dtype_of, static_shape

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
        scale, zero = self._along(array.ndim)
        real: NDArray[np.float32] = (array.astype(np.int64) - zero).astype(np.float32) * scale
        return real

    def quantize(self, array: NDArray[Any]) -> NDArray[Any]:
        """Nearest integers of real values, ties to even, as ONNX's QuantizeLinear defines it."""
        scale, zero = self._along(array.ndim)
        limits = np.iinfo(self.dtype)
        steps = np.rint(array.astype(np.float32) / scale) + zero
        integers: NDArray[Any] = np.clip(steps, limits.min, limits.max).astype(self.dtype)
        return integers

    def _along(self, rank: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scales and zero points in a shape that broadcasts to a tensor's."""
        shape = [1] * rank if self.axis is not None else []
        if self.axis is not None:
            shape[self.axis] = -1
        scales = np.array(self.scales, np.float32).reshape(shape)
        return scales, np.array(self.zero_points, np.int64).reshape(shape)


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


@dataclass(frozen=True)
class QuantizedConstant:
    """Constant integers and what they stand for: a weight or a bias in QDQ form."""

    array: NDArray[Any]
    quantization: Quantization

    def transposed(self, axes: Sequence[int]) -> QuantizedConstant:
        """With its axes in another order."""
        old = self.quantization.axis
        moved = None if old is None else list(axes).index(old)
        array = np.ascontiguousarray(self.array.transpose(axes))
        return QuantizedConstant(array, replace(self.quantization, axis=moved))

    def reshaped(self, shape: Sequence[int]) -> QuantizedConstant | None:
        """In another shape; None where that takes the channels' axis apart."""
        array, axis = self.array.reshape(shape), self.quantization.axis
        if axis is None:
            return QuantizedConstant(array, self.quantization)
        outer, size = math.prod(self.array.shape[:axis]), self.array.shape[axis]
        for position, length in enumerate(array.shape):
            if length == size and math.prod(array.shape[:position]) == outer:
                return QuantizedConstant(array, replace(self.quantization, axis=position))
        return None

    def expression(self) -> relax.Call:
        """The dequantize call that stands for it in a graph."""
        return dequantize(relax.const(self.array, self.array.dtype.name), self.quantization)


def quantized_constant(graph: Graph, expr: relax.Expr) -> QuantizedConstant | None:
    """The integers behind a variable that is a dequantized constant, else None."""
    value = graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
    if not isinstance(value, relax.Call) or not isinstance(value.op, tvm.ir.Op):
        return None
    array = constant_value(value.args[0]) if value.op.name == DEQUANTIZE else None
    numbers = quantization_of(value) if array is not None else None
    return None if array is None or numbers is None else QuantizedConstant(array, numbers)
