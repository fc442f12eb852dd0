"""Walking parsed ONNX messages; no parser is needed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from service.contracts.errors import NnfarmError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

_EXTERNAL = 1  # TensorProto.EXTERNAL


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and all graphs inside its nodes."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(_inner_graphs(current.node))


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """The tensors whose data is in other files."""
    waiting = [model.graph]
    for function in model.functions:
        yield from _external(_node_tensors(function.node))
        waiting.extend(_inner_graphs(function.node))
    for graph in waiting:
        for inner in graphs(graph):
            yield from _external(_tensors(inner))


def location_of(tensor: TensorProto) -> str:
    """Where a tensor's external data is: a name beside the model.

    Raises:
        NnfarmError: ``model.external_data_escapes``.
    """
    location = str(_entry(tensor, "location"))
    if not is_inside(location):
        raise NnfarmError(
            "model.external_data_escapes",
            f"Tensor {tensor.name!r} wants its data from {location!r}, outside the model.",
            tensor=tensor.name,
            location=location,
        )
    return str(PurePosixPath(location))


def span_of(tensor: TensorProto, file_bytes: int) -> tuple[int, int]:
    """Offset and length of a tensor's data in its file of `file_bytes`.

    Raises:
        NnfarmError: ``model.external_data_missing``, the file has no such place.
    """
    try:
        offset = int(_entry(tensor, "offset") or 0)
        length = int(_entry(tensor, "length") or file_bytes - offset)
    except ValueError:
        offset = length = -1
    if offset < 0 or length < 0 or offset + length > file_bytes:
        location = _entry(tensor, "location")
        raise NnfarmError(
            "model.external_data_missing",
            f"Tensor {tensor.name!r} has its data at {_entry(tensor, 'offset') or 0} of "
            f"{location!r}, {_entry(tensor, 'length') or 'all'} bytes; the file has {file_bytes}.",
            tensor=tensor.name,
            location=location,
        )
    return offset, length


def is_inside(name: str) -> bool:
    """Whether a relative name stays in its folder, and means the same on every system."""
    path = PurePosixPath(name)
    return (
        path.parts != ()
        and name.isprintable()
        and not path.is_absolute()
        and ".." not in path.parts
        and "\\" not in name
        and ":" not in name
    )


def _entry(tensor: TensorProto, key: str) -> str:
    return next((str(item.value) for item in tensor.external_data if item.key == key), "")


def _external(tensors: Iterable[TensorProto]) -> Iterator[TensorProto]:
    return (tensor for tensor in tensors if tensor.data_location == _EXTERNAL)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield attribute.sparse_tensor.values
                yield attribute.sparse_tensor.indices


def _inner_graphs(nodes: Iterable[NodeProto]) -> Iterator[GraphProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs
