"""Operands as the converters of ONNX operations read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value
from workers.graph.quantization import DEQUANTIZE, quantization_of

Inputs = Sequence[relax.Expr | None]
"""A node's inputs; None is an optional one left out."""


@dataclass(frozen=True)
class Scope:
    """Where a node stands.

    Attributes:
        opset: version of ONNX's operations.
        emit: binds an expression that is used more than once.
    """

    opset: int
    emit: Callable[[relax.Expr], relax.Expr]


Converter = Callable[[Inputs, dict[str, Any], Scope], relax.Expr | None]
"""Inputs, attributes and scope to the node's value; None leaves the node to TVM's converter."""


def operand(inputs: Inputs, index: int) -> relax.Expr | None:
    """An input, None where it is left out."""
    return inputs[index] if index < len(inputs) else None


def constant(inputs: Inputs, index: int) -> NDArray[Any] | None:
    """The numbers of a constant input, None where there are none."""
    expr = operand(inputs, index)
    return constant_value(expr) if expr is not None else None


def real_constant(inputs: Inputs, index: int) -> NDArray[Any] | None:
    """The numbers of a constant input, quantized or not, None where there are none."""
    expr, builder = operand(inputs, index), relax.BlockBuilder.current()
    value = expr
    if isinstance(expr, relax.Var) and builder is not None:
        value = builder.lookup_binding(expr)
    if isinstance(value, relax.Call) and getattr(value.op, "name", "") == DEQUANTIZE:
        array, numbers = constant_value(value.args[0]), quantization_of(value)
        return None if array is None or numbers is None else numbers.dequantize(array)
    return constant(inputs, index)


def text(attrs: dict[str, Any], name: str, default: str) -> str:
    """A string attribute."""
    value = attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)
