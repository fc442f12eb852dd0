"""Operands as the converters of ONNX operations read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value, static_shape
from workers.graph.quantization import DEQUANTIZE, Quantization, quantization_of

Inputs = Sequence[relax.Expr | None]
"""A node's inputs; None is an optional one left out."""


@dataclass(frozen=True)
class Scope:
    """Where a node stands.

    Attributes:
        opset: version of ONNX's operations.
        emit: binds an expression that is used more than once.
        reals: by a variable of integers, the real numbers that are these integers.
    """

    opset: int
    emit: Callable[[relax.Expr], relax.Expr]
    reals: dict[relax.Var, relax.Expr] = field(default_factory=dict)

    def integers(self, real: relax.Expr, dtype: str) -> relax.Expr:
        """Bind integers computed as real numbers, so that what reads them finds these."""
        value = self.emit(real)
        whole = self.emit(relax.op.astype(self.emit(relax.op.round(value)), dtype))
        if isinstance(whole, relax.Var):
            self.reals[whole] = value
        return whole

    def real_of(self, integers: relax.Expr | None) -> relax.Expr | None:
        """The real numbers that integers were computed as, None where they were not."""
        return self.reals.get(integers) if isinstance(integers, relax.Var) else None


Converter = Callable[[Inputs, dict[str, Any], Scope], relax.Expr | None]
"""Inputs, attributes and scope to the node's value; None leaves the node to TVM's converter."""


def operand(inputs: Inputs, index: int) -> relax.Expr | None:
    """An input, None where it is left out."""
    return inputs[index] if index < len(inputs) else None


def constant(inputs: Inputs, index: int) -> NDArray[Any] | None:
    """The numbers of a constant input, None where there are none."""
    expr = operand(inputs, index)
    return constant_value(expr) if expr is not None else None


def binding_of(expr: relax.Expr | None) -> relax.Expr | None:
    """What a variable was bound to by an earlier node; any other expression as it is."""
    builder = relax.BlockBuilder.current()
    if isinstance(expr, relax.Var) and builder is not None:
        return builder.lookup_binding(expr)
    return expr


def rank_of(expr: relax.Expr) -> int:
    """The number of axes."""
    return len(static_shape(expr) or ()) or int(expr.ty.ndim)


def quantization(
    inputs: Inputs, scale_at: int, zero_at: int, dtype: str, axis: int, rank: int
) -> Quantization:
    """Scales and zero points that are inputs of a node.

    Args:
        inputs: the node's.
        scale_at: which of them is the scale.
        zero_at: which is the zero point; it may be left out.
        dtype: element type of the integers.
        axis: the channels', where there are several scales.
        rank: number of axes of what is quantized.

    Raises:
        ValueError: they are not constant, or of blocks.
    """
    scales, zeros = constant(inputs, scale_at), constant(inputs, zero_at)
    if scales is None or (operand(inputs, zero_at) is not None and zeros is None):
        raise ValueError("scales and zero points have to be constants")
    if zeros is None:
        zeros = np.zeros(scales.shape, np.int64)
    if scales.ndim > 1:
        raise ValueError("quantization by blocks is not supported")
    flat = tuple(float(s) for s in scales.reshape(-1))
    whole = tuple(int(z) for z in np.broadcast_to(zeros, scales.shape).reshape(-1))
    return Quantization(dtype, flat, whole, axis % max(rank, 1) if len(flat) > 1 else None)


def real_constant(inputs: Inputs, index: int) -> NDArray[Any] | None:
    """The numbers of a constant input, quantized or not, None where there are none."""
    value = binding_of(operand(inputs, index))
    if isinstance(value, relax.Call) and getattr(value.op, "name", "") == DEQUANTIZE:
        array, numbers = constant_value(value.args[0]), quantization_of(value)
        return None if array is None or numbers is None else numbers.dequantize(array)
    return constant(inputs, index)


def text(attrs: dict[str, Any], name: str, default: str) -> str:
    """A string attribute."""
    value = attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)
