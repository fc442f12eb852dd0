"""The NNAPI C interface by ctypes: what the simulator's tests build models with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import byref, c_bool, c_float, c_int32, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Result codes.
NO_ERROR, UNEXPECTED_NULL, BAD_DATA, BAD_STATE = 0, 3, 4, 6
OUTPUT_INSUFFICIENT_SIZE = 8

# Operand types.
FLOAT32, INT32, TENSOR_FLOAT32, TENSOR_INT32, TENSOR_QUANT8 = 0, 1, 3, 4, 5
BOOL, TENSOR_FLOAT16, TENSOR_BOOL8, PER_CHANNEL, TENSOR_QUANT8_SIGNED = 6, 8, 9, 11, 14

_TYPE_OF = {
    "float32": TENSOR_FLOAT32,
    "int32": TENSOR_INT32,
    "uint8": TENSOR_QUANT8,
    "float16": TENSOR_FLOAT16,
    "bool": TENSOR_BOOL8,
    "int8": TENSOR_QUANT8_SIGNED,
}
_DTYPE_OF = {type_: np.dtype(name) for name, type_ in _TYPE_OF.items()}

# Operations the tests use by name.
ADD, CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, MUL, RELU = 0, 3, 4, 9, 18, 19
RESHAPE, SOFTMAX, TRANSPOSE, REDUCE_SUM, BATCH_MATMUL, REVERSE = 22, 25, 37, 80, 102, 105
AVERAGE_POOL_2D, SUB, ABS, LOGISTIC, HARD_SWISH, FILL, GATHER = 1, 36, 38, 14, 99, 100, 51


class OperandType(ctypes.Structure):
    """ANeuralNetworksOperandType."""

    _fields_ = (
        ("type", c_int32),
        ("rank", c_uint32),
        ("dims", ctypes.POINTER(c_uint32)),
        ("scale", c_float),
        ("zero_point", c_int32),
    )


class ChannelQuant(ctypes.Structure):
    """ANeuralNetworksSymmPerChannelQuantParams."""

    _fields_ = (
        ("dim", c_uint32),
        ("count", c_uint32),
        ("scales", ctypes.POINTER(c_float)),
    )


def operand_type(
    type_: int, dims: Sequence[int] = (), scale: float = 0.0, zero_point: int = 0
) -> OperandType:
    array = (c_uint32 * max(len(dims), 1))(*dims)
    pointer = ctypes.cast(array, ctypes.POINTER(c_uint32))
    return OperandType(type_, len(dims), pointer if dims else None, scale, zero_point)


class NnapiError(Exception):
    """A call answered something else than NO_ERROR."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {code}")
        self.function = function
        self.code = code


class Library:
    """One loaded library; `call` raises on an error, `code` returns the result code."""

    def __init__(self, path: Path) -> None:
        self.dll = ctypes.CDLL(str(path))
        self.dll.ANeuralNetworks_getRuntimeFeatureLevel.restype = ctypes.c_int64
        for name in ("Model", "Compilation", "Execution", "Event", "Memory", "Burst"):
            self.dll[f"ANeuralNetworks{name}_free"].restype = None

    @property
    def feature_level(self) -> int:
        return int(self.dll.ANeuralNetworks_getRuntimeFeatureLevel())

    def code(self, function: str, *args: Any) -> int:
        return int(self.dll[f"ANeuralNetworks{function}"](*args))

    def call(self, function: str, *args: Any) -> None:
        code = self.code(function, *args)
        if code != NO_ERROR:
            raise NnapiError(function, code)

    def free(self, kind: str, handle: c_void_p) -> None:
        self.dll[f"ANeuralNetworks{kind}_free"](handle)

    def devices(self) -> dict[str, c_void_p]:
        count = c_uint32()
        self.call("_getDeviceCount", byref(count))
        found = {}
        for index in range(count.value):
            device, name = c_void_p(), ctypes.c_char_p()
            self.call("_getDevice", index, byref(device))
            self.call("Device_getName", device, byref(name))
            assert name.value is not None
            found[name.value.decode()] = device
        return found


class Model:
    """Builds one model; operands are named by the index the methods return."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.handle = c_void_p()
        self.count = 0
        self.inputs: list[int] = []
        self.types: list[OperandType] = []
        self._alive: list[Any] = []  # big values are used in place
        library.call("Model_create", byref(self.handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.free("Model", self.handle)

    def operand(
        self, type_: int, dims: Sequence[int] = (), scale: float = 0.0, zero_point: int = 0
    ) -> int:
        described = operand_type(type_, dims, scale, zero_point)
        self.library.call("Model_addOperand", self.handle, byref(described))
        self.types.append(described)
        self.count += 1
        return self.count - 1

    def input(
        self, type_: int, dims: Sequence[int], scale: float = 0.0, zero_point: int = 0
    ) -> int:
        self.inputs.append(self.operand(type_, dims, scale, zero_point))
        return self.inputs[-1]

    def constant(self, value: Array, scale: float = 0.0, zero_point: int = 0) -> int:
        index = self.operand(_TYPE_OF[value.dtype.name], value.shape, scale, zero_point)
        return self._set(index, value)

    def scalar(self, value: float | int | bool) -> int:
        if isinstance(value, bool):
            return self._set(self.operand(BOOL), np.array([value], np.bool_))
        if isinstance(value, int):
            return self._set(self.operand(INT32), np.array([value], np.int32))
        return self._set(self.operand(FLOAT32), np.array([value], np.float32))

    def per_channel(self, value: Array, dim: int, scales: Sequence[float]) -> int:
        index = self.operand(PER_CHANNEL, value.shape)
        array = (c_float * len(scales))(*scales)
        params = ChannelQuant(dim, len(scales), ctypes.cast(array, ctypes.POINTER(c_float)))
        self.library.call(
            "Model_setOperandSymmPerChannelQuantParams", self.handle, index, byref(params)
        )
        return self._set(index, value)

    def _set(self, index: int, value: Array) -> int:
        stored = np.ascontiguousarray(value)
        self._alive.append(stored)
        self.library.call(
            "Model_setOperandValue",
            self.handle,
            index,
            stored.ctypes.data_as(c_void_p),
            c_size_t(stored.nbytes),
        )
        return index

    def operation(self, code: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.library.call(
            "Model_addOperation",
            self.handle,
            code,
            len(inputs),
            (c_uint32 * len(inputs))(*inputs),
            len(outputs),
            (c_uint32 * len(outputs))(*outputs),
        )

    def finish(self, outputs: Sequence[int]) -> Self:
        self.outputs = list(outputs)
        self.library.call(
            "Model_identifyInputsAndOutputs",
            self.handle,
            len(self.inputs),
            (c_uint32 * max(len(self.inputs), 1))(*self.inputs),
            len(outputs),
            (c_uint32 * len(outputs))(*outputs),
        )
        self.library.call("Model_finish", self.handle)
        return self


class Compilation:
    """A finished compilation of a finished model."""

    def __init__(self, model: Model, devices: Sequence[c_void_p] | None = None) -> None:
        self.model = model
        self.library = model.library
        self.handle = c_void_p()
        if devices is None:
            self.library.call("Compilation_create", model.handle, byref(self.handle))
        else:
            self.library.call(
                "Compilation_createForDevices",
                model.handle,
                (c_void_p * len(devices))(*devices),
                len(devices),
                byref(self.handle),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.free("Compilation", self.handle)

    def finish(self) -> Self:
        self.library.call("Compilation_finish", self.handle)
        return self

    def execution(self) -> Execution:
        return Execution(self)


class Execution:
    """One execution; `run` sets all arguments, computes, and returns the outputs."""

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation
        self.library = compilation.library
        self.handle = c_void_p()
        self.outputs: list[Array] = []
        self._alive: list[Any] = []
        self.library.call("Execution_create", compilation.handle, byref(self.handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.free("Execution", self.handle)

    def set_input(self, index: int, value: Array) -> None:
        stored = np.ascontiguousarray(value)
        self._alive.append(stored)
        model = self.compilation.model
        described = model.types[model.inputs[index]]
        shape = operand_type(described.type, value.shape, described.scale, described.zero_point)
        self.library.call(
            "Execution_setInput",
            self.handle,
            index,
            byref(shape),
            stored.ctypes.data_as(c_void_p),
            c_size_t(stored.nbytes),
        )

    def set_output(self, index: int, shape: Sequence[int]) -> Array:
        model = self.compilation.model
        value = np.zeros(shape, _DTYPE_OF[model.types[model.outputs[index]].type])
        self._alive.append(value)
        self.library.call(
            "Execution_setOutput",
            self.handle,
            index,
            None,
            value.ctypes.data_as(c_void_p),
            c_size_t(value.nbytes),
        )
        return value

    def set_all(self, inputs: Sequence[Array], output_shapes: Sequence[Sequence[int]]) -> None:
        for index, value in enumerate(inputs):
            self.set_input(index, value)
        self.outputs = [self.set_output(i, shape) for i, shape in enumerate(output_shapes)]

    def compute(self) -> None:
        self.library.call("Execution_compute", self.handle)

    def output_dims(self, index: int) -> tuple[int, ...]:
        rank = c_uint32()
        self.library.call("Execution_getOutputOperandRank", self.handle, index, byref(rank))
        dims = (c_uint32 * rank.value)()
        self.library.call("Execution_getOutputOperandDimensions", self.handle, index, dims)
        return tuple(dims)


def run_operation(
    library: Library,
    code: int,
    add_inputs: Callable[[Model], Sequence[int]],
    feeds: Sequence[Array],
    output: tuple[int, Sequence[int], float, int],
) -> Array:
    """Runs a model of one operation; `output` is its type, shape, scale and zero point."""
    with Model(library) as model:
        inputs = add_inputs(model)
        result = model.operand(*output)
        model.operation(code, inputs, [result])
        model.finish([result])
        with Compilation(model) as compilation, compilation.finish().execution() as execution:
            execution.set_all(feeds, [output[1]])
            execution.compute()
            return execution.outputs[0].copy()


def set_measure_timing(execution: Execution) -> None:
    execution.library.call("Execution_setMeasureTiming", execution.handle, c_bool(True))
