"""What a TFLite file must keep to be worth a worker's time; imported only by the inspection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from service.contracts.errors import NnfarmError
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from service.resources.models.dimensions import check_shape

_VERSION = 3

_DTYPES: dict[int, DType] = {
    schema.TensorType.FLOAT32: DType.FLOAT32,
    schema.TensorType.FLOAT16: DType.FLOAT16,
    schema.TensorType.FLOAT64: DType.FLOAT64,
    schema.TensorType.INT8: DType.INT8,
    schema.TensorType.UINT8: DType.UINT8,
    schema.TensorType.INT16: DType.INT16,
    schema.TensorType.INT32: DType.INT32,
    schema.TensorType.INT64: DType.INT64,
    schema.TensorType.BOOL: DType.BOOL,
}


def inspect_tflite(path: Path) -> ModelSignature:
    """Check a model file and give its signature; nothing in it is executed.

    Raises:
        NnfarmError: a ``model.*`` code.
    """
    try:
        model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
        return _inspect(model)
    except NnfarmError:
        raise
    except Exception as error:  # the reader has no verifier: a bad offset can raise anything
        raise NnfarmError(
            "model.unreadable", f"The file is damaged, truncated or no TFLite model: {error!r}"
        ) from error


def _inspect(model: Any) -> ModelSignature:
    if model.version != _VERSION:
        raise NnfarmError(
            "model.unreadable", f"The TFLite file has version {model.version}, not {_VERSION}."
        )
    if not model.subgraphs:
        raise NnfarmError("model.invalid", "The file has no graph.")
    for graph in model.subgraphs:  # the first is the model, others are branches, loops and calls
        for tensor in graph.tensors or ():
            check_shape(_name(tensor), _shape(tensor))
        _check_order(model, graph)
    graph = model.subgraphs[0]
    if not len(_indexes(graph.outputs)):
        raise NnfarmError("model.invalid", "The model has no outputs.")
    return ModelSignature(
        inputs=tuple(_spec(graph.tensors[i], "Input") for i in _indexes(graph.inputs)),
        outputs=tuple(_spec(graph.tensors[i], "Output") for i in _indexes(graph.outputs)),
    )


def _indexes(stated: Any) -> list[int]:
    """A list of the file, which may leave out empty ones."""
    return [] if stated is None else [int(index) for index in stated]


def _check_order(model: Any, graph: Any) -> None:
    """Each tensor must be a constant, an input, or made before it is used."""
    known = set(_indexes(graph.inputs))
    for index, tensor in enumerate(graph.tensors or ()):
        if tensor.isVariable or model.buffers[tensor.buffer].data is not None:
            known.add(index)
    for position, operator in enumerate(graph.operators or ()):
        _ = model.operatorCodes[operator.opcodeIndex]
        for index in _indexes(operator.inputs):
            if index >= 0 and index not in known:
                raise NnfarmError(
                    "model.cyclic",
                    f"Operator {position} uses tensor {_name(graph.tensors[index])!r} before "
                    "anything makes it.",
                    node=str(position),
                    tensor=_name(graph.tensors[index]),
                )
        known.update(_indexes(operator.outputs))
    for index in _indexes(graph.outputs):
        if index not in known:
            raise NnfarmError(
                "model.invalid", f"Nothing makes the output {_name(graph.tensors[index])!r}."
            )


def _name(tensor: Any) -> str:
    return str((tensor.name or b"").decode(errors="replace"))


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(int(d) for d in tensor.shape) if tensor.shape is not None else ()


def _spec(tensor: Any, role: str) -> TensorSpec:
    dtype = _DTYPES.get(tensor.type)
    if dtype is None:
        raise NnfarmError(
            "model.invalid",
            f"{role} {_name(tensor)!r} has element type {tensor.type}, which is not taken.",
        )
    return TensorSpec(name=_name(tensor), dtype=dtype, shape=_shape(tensor))
