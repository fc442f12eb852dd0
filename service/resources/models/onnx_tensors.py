"""Shapes and element types of an ONNX model's tensors."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto

from service.contracts.errors import NnfarmError
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from service.resources.models.dimensions import check_shape

_DTYPES: dict[int, DType] = {
    TensorProto.FLOAT: DType.FLOAT32,
    TensorProto.FLOAT16: DType.FLOAT16,
    TensorProto.DOUBLE: DType.FLOAT64,
    TensorProto.INT8: DType.INT8,
    TensorProto.UINT8: DType.UINT8,
    TensorProto.INT16: DType.INT16,
    TensorProto.INT32: DType.INT32,
    TensorProto.INT64: DType.INT64,
    TensorProto.BOOL: DType.BOOL,
}


def check_dims(graph: GraphProto) -> None:
    """Refuse dimensions and sizes no device can hold.

    Raises:
        NnfarmError: ``model.bad_dimension``.
    """
    for tensor in graph.initializer:
        check_shape(tensor.name, list(tensor.dims))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type"):
            dims = value.type.tensor_type.shape.dim
            check_shape(value.name, [dim.dim_value for dim in dims if dim.HasField("dim_value")])


def signature_of(model: ModelProto) -> ModelSignature:
    """Inputs (without those that are constants) and outputs, in the model's order.

    Raises:
        NnfarmError: ``model.invalid`` or ``model.bad_dimension``.
    """
    graph = model.graph
    if not graph.output:
        raise NnfarmError("model.invalid", "The model has no outputs.")
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    outputs: Iterable[ValueInfoProto] = graph.output
    if not all(value.type.tensor_type.HasField("shape") for value in graph.output):
        outputs = _inferred_outputs(model)
    return ModelSignature(
        inputs=tuple(_spec(value, "Input") for value in inputs),
        outputs=tuple(_spec(value, "Output") for value in outputs),
    )


def _inferred_outputs(model: ModelProto) -> Iterable[ValueInfoProto]:
    try:
        return list(onnx.shape_inference.infer_shapes(model).graph.output)
    except onnx.shape_inference.InferenceError as error:
        raise NnfarmError("model.invalid", f"The shapes do not fit: {error}") from error


def _spec(value: ValueInfoProto, role: str) -> TensorSpec:
    if not value.type.HasField("tensor_type"):
        raise NnfarmError("model.invalid", f"{role} {value.name!r} is not a tensor.")
    tensor = value.type.tensor_type
    dtype = _DTYPES.get(tensor.elem_type)
    if dtype is None:
        number = tensor.elem_type
        known = number in TensorProto.DataType.values()
        name = TensorProto.DataType.Name(number) if known else str(number)
        raise NnfarmError(
            "model.invalid", f"{role} {value.name!r} has element type {name}, which is not taken."
        )
    if not tensor.HasField("shape"):
        raise NnfarmError("model.bad_dimension", f"{role} {value.name!r} has no known rank.")
    shape = (dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim)
    return TensorSpec(name=value.name, dtype=dtype, shape=tuple(shape))
