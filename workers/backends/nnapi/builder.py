"""The builder op files write a model with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.model import Model, Operand, Operation
from workers.backends.nnapi.operand_types import TENSOR_TYPES, OperandType
from workers.backends.nnapi.opset import opset
from workers.backends.nnapi.opset.admission import least_level
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.quantization import Quantization, quantization_of


class ModelBuilder:
    """Writes one model; what op files call in `lower`.

    Args:
        quantizations: parameters of the graph's quantized variables.
        half: whether the graph's float32 tensors are float16 inside the model; its inputs and
            outputs stay float32 (CAST, feature level 3).
    """

    def __init__(self, quantizations: Mapping[relax.Var, Quantization], half: bool = False) -> None:
        self.model = Model()
        self._half = half
        self._quantizations = quantizations
        self._by_var: dict[relax.Var, int] = {}
        self._constants: dict[Operand, int] = {}
        self._dequantized: Mapping[relax.Var, relax.Call] = {}
        self._takes_integers = False

    def enter(self, dequantized: Mapping[relax.Var, relax.Call], takes_integers: bool) -> None:
        """Begin one site.

        Args:
            dequantized: the site's own dequantize calls.
            takes_integers: whether the operation computes on what they read, or on real numbers.
        """
        self._dequantized = dequantized
        self._takes_integers = takes_integers

    def input(self, var: relax.Var) -> int:
        """Declare a model input."""
        if self._inside(dtype_of(var)) == dtype_of(var):
            index = self.output(var)
            self.model.inputs += (index,)
            return index
        border = self._add(Operand(OperandType.TENSOR_FLOAT32, static_shape(var) or ()))
        self.model.inputs += (border,)
        self.add("CAST", self.output(var), input=border)
        return self._by_var[var]

    def output(self, var: relax.Var) -> int:
        """A new operand for the value of a variable."""
        kind, shape = self._tensor_type(dtype_of(var)), static_shape(var) or ()
        numbers = self._quantizations.get(var)
        if numbers is None:
            self._by_var[var] = self._add(Operand(kind, shape))
        else:
            self._by_var[var] = self._add(
                Operand(kind, shape, scale=numbers.scale, zero_point=numbers.zero_point)
            )
        return self._by_var[var]

    def alias(self, var: relax.Var, operand: int) -> None:
        """Let a variable stand for an operand that is there already."""
        self._by_var[var] = operand

    def results_of(self, name: str, inputs: tuple[int, ...]) -> tuple[int, ...] | None:
        """Results of an operation that is in the model already, None where there is none."""
        same = (
            op.outputs for op in self.model.operations if (op.name, op.inputs) == (name, inputs)
        )
        return next(same, None)

    def temporary(self, shape: Sequence[int], dtype: str) -> int:
        """A new tensor operand of real or plain integer numbers that no variable stands for."""
        return self._add(Operand(self._tensor_type(dtype), tuple(shape)))

    def like(self, operand: int, shape: Sequence[int]) -> int:
        """A new tensor operand with another one's element type and quantization."""
        return self._add(replace(self.model.operands[operand], dims=tuple(shape), value=None))

    def shape(self, operand: int) -> tuple[int, ...]:
        """Shape of an operand."""
        return self.model.operands[operand].dims

    def quantization(self, operand: int) -> tuple[float, int]:
        """Scale and zero point of an operand; scale 0 where it is not quantized."""
        return self.model.operands[operand].scale, self.model.operands[operand].zero_point

    def operand(self, expr: relax.Expr) -> int:
        """Operand of an expression: a variable met before, or a constant tensor."""
        if isinstance(expr, relax.Var) and expr in self._dequantized:
            return self._dequantized_operand(self._dequantized[expr])
        if isinstance(expr, relax.Var):
            return self.variable(expr)
        array = constant_value(expr)
        if array is None:
            raise TypeError(f"no operand for {type(expr).__name__}")
        return self.constant(array)

    def variable(self, var: relax.Var) -> int:
        """Operand of a variable met before."""
        return self._by_var[var]

    def constant(self, array: NDArray[np.generic]) -> int:
        """A constant tensor; a scalar array becomes a tensor of one element."""
        array = array.astype(self._inside(array.dtype.name), copy=False)
        dims = array.shape or (1,)
        data = self._content(array)
        return self._shared(Operand(TENSOR_TYPES[array.dtype.name], dims, data))

    def quantized_constant(self, array: NDArray[Any], quantization: Quantization) -> int:
        """A constant tensor of quantized numbers.

        Args:
            array: int8 or uint8, or int32 (a bias, whose operand has the product's scale).
            quantization: one scale, or one a channel (int8 about zero, or an int32 bias, whose
                scales NNAPI knows from the weights).
        """
        data, dims = self._content(array), array.shape or (1,)
        kind = TENSOR_TYPES[array.dtype.name]
        if quantization.axis is None:
            return self._shared(
                Operand(kind, dims, data, quantization.scale, quantization.zero_point)
            )
        if kind is OperandType.TENSOR_INT32:
            return self._shared(Operand(kind, dims, data))
        return self._shared(
            Operand(
                OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL,
                dims,
                data,
                channel_dim=quantization.axis,
                channel_scales=quantization.scales,
            )
        )

    def _dequantized_operand(self, call: relax.Call) -> int:
        """What a site sees of one of its dequantize calls."""
        array, numbers = constant_value(call.args[0]), quantization_of(call)
        if array is None:
            return self.variable(call.args[0])
        if numbers is None:
            raise TypeError("a dequantize call without constant parameters belongs to no site")
        if self._takes_integers:
            return self.quantized_constant(array, numbers)
        return self.constant(numbers.dequantize(array))

    def int32s(self, values: Sequence[int]) -> int:
        """A constant 1-D int32 tensor."""
        return self.constant(np.array(values, np.int32))

    def int32(self, value: int) -> int:
        """A constant INT32 scalar."""
        return self._shared(Operand(OperandType.INT32, (), np.int32(value).tobytes()))

    def real(self, value: float, tensor: int) -> int:
        """A constant scalar of a tensor operand's floating-point type; FLOAT32 beside integers."""
        if self.model.operands[tensor].type is OperandType.TENSOR_FLOAT16:
            return self._shared(Operand(OperandType.FLOAT16, (), np.float16(value).tobytes()))
        return self._shared(Operand(OperandType.FLOAT32, (), np.float32(value).tobytes()))

    def bool(self, value: bool) -> int:
        """A constant BOOL scalar."""
        return self._shared(Operand(OperandType.BOOL, (), bytes([int(value)])))

    def omitted(self, tensor: int) -> int:
        """An optional operand without value, of a tensor operand's element type."""
        return self._shared(Operand(self.model.operands[tensor].type, (0,), is_omitted=True))

    def add(
        self,
        name: str,
        output: int | tuple[int, ...],
        *repeated: int,
        level: int = 1,
        **roles: int,
    ) -> None:
        """Append an operation, its inputs by role (see docs/reference/nnapi-operations.md).

        Args:
            name: operation name without prefix.
            output: operand index of the result, or of the results in order.
            repeated: operands of a repeated role, in order.
            level: level of a rule this use needs beyond the operation's own (dilation, axis).
            roles: operand index by role name.
        """
        spec = opset()[name]
        inputs: list[int] = []
        for role in spec.inputs:
            if role.is_repeated:
                inputs.extend(repeated)
            elif role.is_optional and role.name not in roles:
                break
            else:
                inputs.append(roles.pop(role.name))
        if roles:
            raise ValueError(f"{name} has no role {', '.join(roles)} in this position")
        outputs = output if isinstance(output, tuple) else (output,)
        least = least_level(spec, self._types(inputs), self._types(outputs))
        if least is None:
            kinds = ("none" if kind is None else kind.name for kind in self._types(inputs))
            shown = ", ".join(kinds)
            raise ValueError(f"no level of NNAPI has {name} of {shown}")
        self.model.operations.append(Operation(spec.code, name, tuple(inputs), outputs))
        self.model.level = max(self.model.level, least, level)

    def _types(self, operands: Sequence[int]) -> list[OperandType | None]:
        given = (self.model.operands[index] for index in operands)
        return [None if operand.is_omitted else operand.type for operand in given]

    def reshape(self, source: int, shape: Sequence[int], output: int | None = None) -> int:
        """Append a RESHAPE; gives the operand of the result."""
        if output is None:
            output = self.like(source, shape)
        self.add("RESHAPE", output, input=source, shape=self.int32s(shape))
        return output

    def finish(self, outputs: Sequence[relax.Var]) -> Model:
        """Name the outputs; the builder is done."""
        self.model.outputs = tuple(self._border(var) for var in outputs)
        return self.model

    def _border(self, var: relax.Var) -> int:
        if self._inside(dtype_of(var)) == dtype_of(var):
            return self._by_var[var]
        border = self._add(Operand(OperandType.TENSOR_FLOAT32, static_shape(var) or ()))
        self.add("CAST", border, input=self._by_var[var])
        return border

    def _inside(self, dtype: str) -> str:
        """Element type inside the model of a graph's element type."""
        return "float16" if self._half and dtype == "float32" else dtype

    def _tensor_type(self, dtype: str) -> OperandType:
        return TENSOR_TYPES[self._inside(dtype)]

    @staticmethod
    def _content(array: NDArray[Any]) -> bytes:
        return np.ascontiguousarray(array).tobytes()

    def _shared(self, operand: Operand) -> int:
        if operand not in self._constants:
            self._constants[operand] = self._add(operand)
        return self._constants[operand]

    def _add(self, operand: Operand) -> int:
        self.model.operands.append(operand)
        return len(self.model.operands) - 1
