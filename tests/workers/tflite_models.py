"""Small TFLite models made in the tests, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "float16": schema.TensorType.FLOAT16,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int16": schema.TensorType.INT16,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "complex64": schema.TensorType.COMPLEX64,
    "resource": schema.TensorType.RESOURCE,
}


@dataclass(frozen=True)
class Value:
    """A tensor: its shape and type, or its elements; quantized when it has scales.

    An open shape has -1 for the dimensions that are 1 until somebody says otherwise.
    """

    shape: Sequence[int] = ()
    dtype: str = "float32"
    data: Any = None
    scale: Sequence[float] | float | None = None
    zero_point: int = 0
    axis: int = 0
    is_variable: bool = False
    sparsity: Any = None
    open_shape: Sequence[int] | None = None


def constant(data: Any, dtype: str = "int32", **options: Any) -> Value:
    array = np.asarray(data, dtype)
    return Value(array.shape, dtype, array, **options)


@dataclass(frozen=True)
class Step:
    """One operator; "" among the inputs is an optional input left out.

    A custom operator's attributes are written as a flexbuffer.
    """

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    options: str = ""
    attributes: Mapping[str, Any] | None = None
    version: int = 1
    custom: bool = False
    intermediates: Sequence[str] = ()


@dataclass(frozen=True)
class Subgraph:
    """One graph of a file."""

    values: Mapping[str, Value]
    steps: Sequence[Step]
    inputs: Sequence[str]
    outputs: Sequence[str]


def tflite_model(
    values: Mapping[str, Value],
    steps: Sequence[Step],
    inputs: Sequence[str],
    outputs: Sequence[str],
    others: Sequence[Subgraph] = (),
) -> bytes:
    """The bytes of a model; its further graphs have the indexes from 1 on."""
    model = schema.ModelT()
    model.version, model.description = 3, "test"
    model.buffers, model.operatorCodes = [schema.BufferT()], []
    graphs = [Subgraph(values, steps, inputs, outputs), *others]
    model.subgraphs = [_subgraph(model, graph) for graph in graphs]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _subgraph(model: Any, stated: Subgraph) -> Any:
    graph = schema.SubGraphT()
    graph.name = "main"
    places = {name: index for index, name in enumerate(stated.values)}
    graph.tensors = [_tensor(model, name, value) for name, value in stated.values.items()]
    graph.inputs = [places[name] for name in stated.inputs]
    graph.outputs = [places[name] for name in stated.outputs]
    graph.operators = [_operator(model, step, places) for step in stated.steps]
    return graph


def _tensor(model: Any, name: str, value: Value) -> Any:
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type = name, list(value.shape), TYPES[value.dtype]
    tensor.isVariable = value.is_variable
    if value.data is not None:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(value.data).tobytes(), np.uint8)
        model.buffers.append(buffer)
        tensor.buffer = len(model.buffers) - 1
    if value.scale is not None:
        numbers = schema.QuantizationParametersT()
        numbers.scale = [value.scale] if isinstance(value.scale, float) else list(value.scale)
        numbers.zeroPoint = [value.zero_point] * len(numbers.scale)
        numbers.quantizedDimension = value.axis
        tensor.quantization = numbers
    tensor.sparsity = value.sparsity
    if value.open_shape is not None:
        tensor.shapeSignature = list(value.open_shape)
    return tensor


def _operator(model: Any, step: Step, places: Mapping[str, int]) -> Any:
    code = schema.OperatorCodeT()
    number = getattr(schema.BuiltinOperator, "CUSTOM" if step.custom else step.op)
    code.customCode = step.op if step.custom else None
    code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
    code.version = step.version
    model.operatorCodes.append(code)
    operator = schema.OperatorT()
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs = [places[name] if name else -1 for name in step.inputs]
    operator.outputs = [places[name] for name in step.outputs]
    operator.intermediates = [places[name] for name in step.intermediates]
    if step.custom:
        operator.customOptions = np.frombuffer(_flexbuffer(step.attributes or {}), np.uint8)
    elif step.options:
        options = getattr(schema, f"{step.options}T")()
        for name, value in (step.attributes or {}).items():
            setattr(options, name, value)
        second = "" if hasattr(schema.BuiltinOptions, step.options) else "2"
        kinds = getattr(schema, f"BuiltinOptions{second}")
        setattr(operator, f"builtinOptions{second}Type", getattr(kinds, step.options))
        setattr(operator, f"builtinOptions{second}", options)
    return operator


def _flexbuffer(attributes: Mapping[str, Any]) -> bytes:
    return bytes(flexbuffers.Dumps(dict(attributes)))
