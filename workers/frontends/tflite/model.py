"""A TFLite file as plain objects: tensors with names, types, values and quantization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from service.contracts.errors import NnfarmError
from workers.frontends.tflite.sparsity import densified
from workers.graph.quantization import Quantization

DTYPES: Mapping[int, str] = {
    schema.TensorType.FLOAT32: "float32",
    schema.TensorType.FLOAT16: "float16",
    schema.TensorType.FLOAT64: "float64",
    schema.TensorType.INT8: "int8",
    schema.TensorType.UINT8: "uint8",
    schema.TensorType.INT16: "int16",
    schema.TensorType.INT32: "int32",
    schema.TensorType.INT64: "int64",
    schema.TensorType.BOOL: "bool",
    schema.TensorType.COMPLEX64: "complex64",
    schema.TensorType.RESOURCE: "resource",
}

_OPERATOR_NAMES = {
    code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)
}


@dataclass(frozen=True)
class Tensor:
    """One tensor of the file.

    Attributes:
        name: its name in the file.
        dtype: element type.
        shape: as the file states it; an open batch is stated as 1.
        quantization: how its integers stand for real numbers, None for plain numbers.
        value: its elements if it is a constant.
        is_variable: a state, zeros at first, that an operator keeps from run to run.
        open_shape: its shape with -1 for dimensions that the file leaves open.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    quantization: Quantization | None
    value: NDArray[Any] | None = field(repr=False)
    is_variable: bool = False
    open_shape: tuple[int, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether it has 16 bits for real numbers; in the graph it is those numbers."""
        return self.dtype == "int16" and self.quantization is not None


@dataclass(frozen=True)
class Operator:
    """One operator; -1 among its inputs is an optional input left out.

    Attributes:
        name: TFLite's, or the custom operator's own.
        options: by attribute, None where the file has none.
        inputs: indexes of tensors.
        outputs: indexes of tensors.
        custom_options: of a custom operator, as that encodes them.
    """

    name: str
    options: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    custom_options: bytes = b""


@dataclass(frozen=True)
class TFLiteModel:
    """One graph of a file.

    Attributes:
        tensors: all of the graph.
        operators: in the order of execution.
        inputs: indexes of tensors.
        outputs: indexes of tensors.
        others: reads another graph of the file by its index, the same one each time.
    """

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    others: Callable[[int], TFLiteModel] = field(repr=False)


def read_model(path: Path) -> TFLiteModel:
    """Read a file; nothing in it is executed.

    Raises:
        NnfarmError: `model.unreadable`, or `compile.unsupported_model` for element types
            that have no place in a graph.
    """
    try:
        return _graphs(schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0))(0)
    except NnfarmError:
        raise
    except Exception as error:  # the reader has no verifier: a bad offset can raise anything
        raise NnfarmError("model.unreadable", f"The TFLite file is damaged: {error!r}") from error


def _graphs(content: Any) -> Callable[[int], TFLiteModel]:
    @cache
    def read(index: int) -> TFLiteModel:
        graph = content.subgraphs[index]
        return TFLiteModel(
            tuple(_tensor(content, tensor) for tensor in graph.tensors or ()),
            tuple(_operator(content, op) for op in graph.operators or ()),
            _indexes(graph.inputs),
            _indexes(graph.outputs),
            read,
        )

    return read


def _indexes(stated: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in stated) if stated is not None else ()


def _operator(content: Any, operator: Any) -> Operator:
    code = content.operatorCodes[operator.opcodeIndex]
    # Old files have the code in a byte; new codes do not fit and leave 127 there.
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    name = _OPERATOR_NAMES.get(number, f"operator {number}")
    if name == "CUSTOM":
        name = (code.customCode or b"CUSTOM").decode(errors="replace")
    return Operator(
        name,
        operator.builtinOptions or operator.builtinOptions2,
        _indexes(operator.inputs),
        _indexes(operator.outputs),
        bytes(operator.customOptions) if operator.customOptions is not None else b"",
    )


def _tensor(content: Any, tensor: Any) -> Tensor:
    name = (tensor.name or b"").decode(errors="replace")
    dtype = DTYPES.get(tensor.type)
    if dtype is None:
        raise NnfarmError(
            "compile.unsupported_model",
            f"Tensor {name!r} has an element type that is not taken.",
            tensor=name,
        )
    shape = tuple(int(d) for d in tensor.shape) if tensor.shape is not None else ()
    numbers, value = _quantization(tensor, dtype), _value(content, tensor, shape)
    open_shape = _indexes(tensor.shapeSignature) or shape
    return Tensor(name, dtype, shape, numbers, value, bool(tensor.isVariable), open_shape)


def _value(content: Any, tensor: Any, shape: tuple[int, ...]) -> NDArray[Any] | None:
    data = content.buffers[tensor.buffer].data
    if data is None or tensor.isVariable or tensor.type == schema.TensorType.RESOURCE:
        return None
    array = np.asarray(data, np.uint8).view(np.dtype(DTYPES[tensor.type]).newbyteorder("<"))
    return array.reshape(shape) if tensor.sparsity is None else _dense(tensor, array, shape)


def _dense(tensor: Any, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return densified(array, tensor.sparsity, shape)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        name = (tensor.name or b"").decode(errors="replace")
        raise NnfarmError(
            "model.unreadable", f"The sparse tensor {name!r} is damaged: {error!r}"
        ) from error


def _quantization(tensor: Any, dtype: str) -> Quantization | None:
    stated = tensor.quantization
    if stated is None or stated.scale is None or len(stated.scale) == 0:
        return None
    if dtype not in ("int8", "uint8", "int16", "int32", "int64"):
        return None  # float tensors may carry their calibrated range
    zero_points = stated.zeroPoint if stated.zeroPoint is not None else ()
    scales = tuple(float(s) for s in stated.scale)
    zeros = tuple(int(z) for z in zero_points) or (0,) * len(scales)
    axis = int(stated.quantizedDimension) if len(scales) > 1 else None
    return Quantization(dtype, scales, zeros, axis)
