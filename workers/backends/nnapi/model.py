"""An NNAPI model in memory, and the builder that op files write it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, dtype_of, static_shape


class OperandType(IntEnum):
    """OperandCode of NeuralNetworksTypes.h."""

    FLOAT32 = 0
    INT32 = 1
    BOOL = 6
    FLOAT16 = 10
    TENSOR_FLOAT32 = 3
    TENSOR_INT32 = 4
    TENSOR_FLOAT16 = 8
    TENSOR_BOOL8 = 9


TENSOR_TYPES: dict[str, OperandType] = {
    "float32": OperandType.TENSOR_FLOAT32,
    "float16": OperandType.TENSOR_FLOAT16,
    "int32": OperandType.TENSOR_INT32,
    "bool": OperandType.TENSOR_BOOL8,
}


class Activation(IntEnum):
    """FuseCode of NeuralNetworksTypes.h."""

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3


@dataclass(frozen=True)
class Operand:
    """One operand; `value` is set for constants."""

    type: OperandType
    dims: tuple[int, ...]
    value: bytes | None = None


@dataclass(frozen=True)
class Operation:
    """One operation; operands by index."""

    code: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass
class Model:
    """Operands, operations in topological order, inputs and outputs by operand index."""

    operands: list[Operand] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    level: int = 1


class ModelBuilder:
    """Writes one model; what op files call in `lower`."""

    def __init__(self) -> None:
        self.model = Model()
        self._by_var: dict[relax.Var, int] = {}
        self._constants: dict[Operand, int] = {}

    def input(self, var: relax.Var) -> int:
        """Declare a model input."""
        index = self.output(var)
        self.model.inputs += (index,)
        return index

    def output(self, var: relax.Var) -> int:
        """A new operand for the value of a variable."""
        self._by_var[var] = self.temporary(static_shape(var) or (), dtype_of(var))
        return self._by_var[var]

    def temporary(self, shape: Sequence[int], dtype: str) -> int:
        """A new tensor operand that no variable stands for."""
        return self._add(Operand(TENSOR_TYPES[dtype], tuple(shape)))

    def operand(self, expr: relax.Expr) -> int:
        """Operand of an expression: a variable met before, or a constant tensor."""
        if isinstance(expr, relax.Var):
            return self._by_var[expr]
        array = constant_value(expr)
        if array is None:
            raise TypeError(f"no operand for {type(expr).__name__}")
        return self.constant(array)

    def constant(self, array: NDArray[np.generic]) -> int:
        """A constant tensor; a scalar array becomes a tensor of one element."""
        dims = array.shape or (1,)
        data = np.ascontiguousarray(array).tobytes()
        return self._shared(Operand(TENSOR_TYPES[array.dtype.name], dims, data))

    def int32s(self, values: Sequence[int]) -> int:
        """A constant 1-D int32 tensor."""
        return self.constant(np.array(values, np.int32))

    def int32(self, value: int) -> int:
        """A constant INT32 scalar."""
        return self._shared(Operand(OperandType.INT32, (), np.int32(value).tobytes()))

    def float32(self, value: float) -> int:
        """A constant FLOAT32 scalar."""
        return self._shared(Operand(OperandType.FLOAT32, (), np.float32(value).tobytes()))

    def bool(self, value: bool) -> int:
        """A constant BOOL scalar."""
        return self._shared(Operand(OperandType.BOOL, (), bytes([int(value)])))

    def add(self, name: str, output: int, *repeated: int, level: int = 1, **roles: int) -> None:
        """Append an operation, its inputs by role (see opset.toml).

        Args:
            name: operation name without prefix.
            output: operand index of the result.
            repeated: operands of a repeated role, in order.
            level: level of a rule this use needs beyond the operation's own (dilation, axis).
            roles: operand index by role name.
        """
        spec = opset()[name]
        inputs: list[int] = []
        for role in spec.required:
            inputs.extend(repeated) if role.endswith("*") else inputs.append(roles.pop(role))
        for role in spec.optional:
            if role not in roles:
                break
            inputs.append(roles.pop(role))
        if roles:
            raise ValueError(f"{name} has no role {', '.join(roles)} in this position")
        self.model.operations.append(Operation(spec.code, name, tuple(inputs), (output,)))
        self.model.level = max(self.model.level, spec.level, level)

    def reshape(self, source: int, shape: Sequence[int], output: int | None = None) -> int:
        """Append a RESHAPE; gives the operand of the result."""
        operand_type = self.model.operands[source].type
        if output is None:
            output = self._add(Operand(operand_type, tuple(shape)))
        self.add("RESHAPE", output, input=source, shape=self.int32s(shape))
        return output

    def finish(self, outputs: Sequence[relax.Var]) -> Model:
        """Name the outputs; the builder is done."""
        self.model.outputs = tuple(self._by_var[var] for var in outputs)
        return self.model

    def _shared(self, operand: Operand) -> int:
        if operand not in self._constants:
            self._constants[operand] = self._add(operand)
        return self._constants[operand]

    def _add(self, operand: Operand) -> int:
        self.model.operands.append(operand)
        return len(self.model.operands) - 1
