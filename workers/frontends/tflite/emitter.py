"""What a converter sees of one operator, and how it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax, tirx

from service.contracts.errors import NnfarmError
from workers.frontends.tflite.model import Operator, Tensor, TFLiteModel
from workers.frontends.tflite.writer import Variables, Writer
from workers.graph.graph import constant_value, static_shape
from workers.graph.quantization import Quantization, dequantize, quantize

RELU, RELU_N1_TO_1, RELU6, TANH = 1, 2, 3, 4
"""ActivationFunctionType."""


class Emitter:
    """One operator of the model while it is converted.

    Operands are read as real numbers: a quantized tensor is dequantized for this operator alone,
    and a quantized result is quantized again, so that each operator is a unit of its own.

    Args:
        model: the graph that the operator stands in.
        operator: to be converted.
        values: of the graph's tensors, as far as it has come.
        writer: where the result is written.
        imaginary: the other part of the graph's complex tensors.
    """

    def __init__(
        self,
        model: TFLiteModel,
        operator: Operator,
        values: dict[int, relax.Expr],
        writer: Writer,
        imaginary: dict[int, relax.Expr],
    ) -> None:
        self._imaginary = imaginary
        self._model = model
        self._values = values
        self._writer = writer
        self.operator = operator

    @property
    def variables(self) -> Variables:
        """The model's."""
        return self._writer.variables

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """Bind an expression."""
        return self._writer.emit(expr)

    def define(self, function: tirx.PrimFunc, name: str) -> tvm.ir.GlobalVar:
        """Put a TIR function into the module."""
        return self._writer.define(function, name)

    def note(self, sentence: str) -> None:
        """Say something in the report's row of the operator."""
        self._writer.note(sentence)

    def inline(self, graph: int, arguments: Sequence[relax.Expr]) -> list[relax.Expr]:
        """Results of another graph of the file, by its index, its operators emitted here."""
        return self._writer.inline(self._model.others(graph), arguments)

    def has(self, position: int) -> bool:
        """Whether an optional input is given."""
        return len(self.operator.inputs) > position and self.operator.inputs[position] >= 0

    def tensor(self, position: int) -> Tensor:
        """An input as the file describes it."""
        if not self.has(position):
            raise self.unsupported(f"has no input {position}")
        return self._model.tensors[self.operator.inputs[position]]

    def output(self, position: int = 0) -> Tensor:
        """An output as the file describes it."""
        return self._model.tensors[self.operator.outputs[position]]

    def option(self, name: str, default: Any) -> Any:
        """An option; files leave out the options of operators that have only defaults."""
        return getattr(self.operator.options, name, default)

    def constant(self, position: int) -> NDArray[Any] | None:
        """The numbers of a constant input as the file has them, or as they were computed."""
        value = self.tensor(position).value
        if value is None and self.operator.inputs[position] in self._values:
            return constant_value(self._values[self.operator.inputs[position]])
        return value

    def needed(self, position: int) -> NDArray[Any]:
        """The numbers of an input that has to be constant."""
        value = self.constant(position)
        if value is None:
            raise self.unsupported(f"takes input {self.tensor(position).name!r} as a constant only")
        return value

    def integers(self, position: int) -> list[int]:
        """A constant list of indexes, axes or sizes."""
        return [int(v) for v in self.needed(position).reshape(-1)]

    def raw(self, position: int) -> relax.Expr:
        """An input as it is stored."""
        tensor = self.tensor(position)
        if tensor.value is not None:
            return self._writer.constant(tensor, None)
        return self._values[self.operator.inputs[position]]

    def real(self, position: int, axes: tuple[int, ...] | None = None) -> relax.Expr:
        """An input as real numbers.

        Args:
            position: of the input.
            axes: new order of a constant's axes, applied to its integers.
        """
        tensor = self.tensor(position)
        numbers, array = tensor.quantization, tensor.value
        if axes is not None and numbers is not None and numbers.axis is not None:
            numbers = replace(numbers, axis=axes.index(numbers.axis))
        if array is None:
            value = self.raw(position)
            if axes is not None:
                value = self.emit(relax.op.permute_dims(value, axes))
            return value if numbers is None or tensor.is_wide else self.dequantized(value, numbers)
        if numbers is None:
            return self._writer.constant(tensor, axes)
        if axes is not None:
            array = np.ascontiguousarray(array.transpose(axes))
        if not self.computes_integers:
            # Only the weights are quantized, to make the file small: no unit needs them so.
            return relax.const(numbers.dequantize(array), "float32")
        return self.dequantized(relax.const(array, tensor.dtype), numbers)

    @property
    def computes_integers(self) -> bool:
        """Whether its result has 8 bits, so that it is a unit of integers."""
        return self.output().quantization is not None and not self.output().is_wide

    def dequantized(self, value: relax.Expr, numbers: Quantization) -> relax.Expr:
        """Real numbers of a stored value."""
        return self.emit(dequantize(value, numbers))

    def shape(self, position: int) -> tuple[int, ...]:
        """Shape of an input."""
        tensor = self.tensor(position)
        if tensor.value is not None:
            return tensor.shape
        return self.shape_of(self.raw(position))

    def shape_of(self, value: relax.Expr) -> tuple[int, ...]:
        """Shape of a value."""
        shape = static_shape(value)
        if shape is None:
            raise self.unsupported("has a shape that is known only at run time")
        return shape

    def activated(self, value: relax.Expr) -> relax.Expr:
        """The operator's fused activation applied."""
        activation = self.option("fusedActivationFunction", 0)
        apply = {
            0: lambda v: v,
            RELU: relax.op.nn.relu,
            RELU_N1_TO_1: lambda v: relax.op.clip(v, -1.0, 1.0),
            RELU6: lambda v: relax.op.clip(v, 0.0, 6.0),
            TANH: relax.op.tanh,
        }.get(activation)
        if apply is None:
            raise self.unsupported(f"has the fused activation {activation}")
        return self.emit(apply(value))

    def give(self, value: relax.Expr, position: int = 0) -> None:
        """A result in real numbers."""
        tensor = self.output(position)
        value = self.emit(value)
        numbers = tensor.quantization
        if numbers is not None and tensor.is_wide:  # it stays real, within the range of its bits
            low, high = (numbers.scale * (end - numbers.zero_point) for end in (-32768, 32767))
            value = relax.op.clip(value, float(low), float(high))
        elif numbers is not None:
            value = quantize(value, numbers)
        self.give_raw(value, position)

    def give_raw(self, value: relax.Expr, position: int = 0) -> None:
        """A result as it is stored."""
        self._values[self.operator.outputs[position]] = self.emit(value)

    def complex(self, position: int) -> tuple[relax.Expr, relax.Expr]:
        """Real and imaginary part of an input."""
        index = self.operator.inputs[position]
        if index not in self._imaginary:
            raise self.unsupported("takes complex numbers that no RFFT2D has made")
        return self._values[index], self._imaginary[index]

    def give_complex(self, real: relax.Expr, imaginary: relax.Expr) -> None:
        """The result in two parts."""
        self.give_raw(real)
        self._imaginary[self.operator.outputs[0]] = self.emit(imaginary)

    @property
    def node(self) -> str:
        """The operator's name in reports: that of its first result."""
        return self.output().name if self.operator.outputs else self.operator.name

    def unsupported(self, reason: str) -> NnfarmError:
        """The error that says what is in the way."""
        node = self.node
        return NnfarmError(
            "compile.unsupported_operation",
            f"{self.operator.name} {node!r} {reason}.",
            node=node,
            op_type=self.operator.name,
        )


Converter = Callable[[Emitter], None]
"""Emits one operator."""
