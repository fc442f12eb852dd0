"""Ingest: the model file becomes a normalised, channels-last graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm import relax

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.tensors import ModelSignature
from workers.frontends.imported import ImportedModel
from workers.frontends.onnx import import_onnx
from workers.frontends.pytorch.importer import import_pytorch
from workers.frontends.tflite.importer import import_tflite
from workers.graph.graph import Graph, static_shape
from workers.pipeline.passes.affine import absorb_affine
from workers.pipeline.passes.cancel import cancel_movements
from workers.pipeline.passes.fold import fold_constants
from workers.pipeline.passes.layers import find_layers
from workers.pipeline.passes.layout import channels_last
from workers.pipeline.passes.narrow import narrow_integers
from workers.pipeline.passes.one_dimensional import raise_sequences
from workers.pipeline.passes.parts import take_parts
from workers.pipeline.passes.quantized_constants import settle_quantized_constants
from workers.pipeline.passes.quantized_movement import say_scales
from workers.pipeline.passes.recompose import recompose
from workers.pipeline.passes.simplify import simplify
from workers.pipeline.passes.three_dimensional import raise_volumes

Importer = Callable[[Path, Mapping[str, Sequence[int]]], ImportedModel]

_IMPORTERS: Mapping[ModelFormat, Importer] = {
    ModelFormat.ONNX: import_onnx,
    ModelFormat.TFLITE: import_tflite,
    ModelFormat.PYTORCH: import_pytorch,
}


@dataclass(frozen=True)
class IngestedModel:
    """The graph that all levels and ABIs start from, and the model's own border."""

    graph: Graph
    signature: ModelSignature


def ingest(
    path: Path, model_format: ModelFormat, input_shapes: Mapping[str, Sequence[int]]
) -> IngestedModel:
    """Import and normalise a model.

    Args:
        path: the model file.
        model_format: which importer reads it.
        input_shapes: shapes of inputs whose model leaves dimensions open.

    Raises:
        NnfarmError: what the importer raises.
    """
    imported = _IMPORTERS[model_format](path, input_shapes)
    graph, signature = normalise(imported.graph), imported.signature
    _check_shapes(graph)
    del imported  # with it goes the first form of the weights
    _return_free_memory()
    return IngestedModel(graph, signature)


def _check_shapes(graph: Graph) -> None:
    """Refuse what makes a shape of values; inputs left open are another matter."""
    if any(static_shape(value) is None for value in graph.inputs):
        return
    for binding in graph.bindings:
        ty = binding.var.ty
        if not isinstance(ty, relax.TensorType) or static_shape(binding.var) is not None:
            continue
        names = [graph.nodes[index].name for index in sorted(graph.origin_of(binding.var))]
        raise NnfarmError(
            "compile.unsupported_model",
            f"Node {names[0] if names else binding.var.name!r}: the shape of its result depends on "
            "values; shapes have to be known when it is compiled.",
            node=names[0] if names else "",
        )


def _return_free_memory() -> None:
    """Gives the system what the forms of the weights before the last one have left.

    malloc keeps it, as pieces between what lives on, and the build would need as much again
    beside it. A C library without the function keeps it.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def normalise(graph: Graph) -> Graph:
    """`fold`, and images in NHWC."""
    return channels_last(fold(graph))


def fold(graph: Graph) -> Graph:
    """Constants computed, operations plainer, batch norm absorbed; layouts as in the model."""
    # The second fold drops what simplify left without readers: absorb_affine counts readers.
    plain = cancel_movements(simplify(fold_constants(graph)))
    plain = find_layers(take_parts(plain))
    graph = raise_volumes(raise_sequences(recompose(say_scales(plain))))
    return absorb_affine(fold_constants(settle_quantized_constants(narrow_integers(graph))))
