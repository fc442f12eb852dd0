"""The float model: read, checked, and prepared for ONNX Runtime's quantization tool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnxruntime.quantization import quant_pre_process

from service.contracts.errors import NnfarmError
from workers.frontends.onnx_files import onnx_path
from workers.frontends.onnx_lifting import first_line, lift, name_nodes

PER_CHANNEL_OPSET = 13
"""From here on QuantizeLinear has an axis."""

_NOT_FLOAT = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
_NOT_FLOAT_BEGINNINGS = ("QLinear", "QGemm", "QAttention", "ConvInteger", "MatMulInteger")


@dataclass(frozen=True)
class FloatModel:
    """A prepared model.

    Attributes:
        path: its file: shapes inferred, constants folded, batch norms absorbed.
        graph: its graph.
    """

    path: Path
    graph: onnx.GraphProto


def prepare(path: Path, exclude_nodes: Iterable[str], folder: Path) -> FloatModel:
    """Check an uploaded model and prepare it; files are written to `folder`.

    Raises:
        NnfarmError: `model.unreadable`, `model.unsupported_opset`,
            `quantize.already_quantized`, `quantize.bad_option` for nodes the model does not have,
            `quantize.unsupported_model`.
    """
    file = onnx_path(path)
    try:
        model = onnx.load(file)
    except Exception as error:
        raise NnfarmError("model.unreadable", f"The ONNX file cannot be read: {error}") from error
    _require_float(model.graph)
    model = lift(model, PER_CHANNEL_OPSET)
    name_nodes(model.graph)
    _require_names(model.graph, exclude_nodes)
    named, prepared = folder / "named.onnx", folder / "prepared.onnx"
    onnx.save(model, named)
    try:
        # Symbolic shapes would need SymPy; ONNX's own inference knows what these networks need.
        quant_pre_process(named, prepared, skip_symbolic_shape=True)
        ready = onnx.load(prepared)
    except Exception as error:
        raise NnfarmError(
            "quantize.unsupported_model", f"The model cannot be prepared: {first_line(error)}"
        ) from error
    _require_kept(ready.graph, exclude_nodes)
    return FloatModel(prepared, ready.graph)


def _require_float(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        if node.op_type in _NOT_FLOAT or node.op_type.startswith(_NOT_FLOAT_BEGINNINGS):
            raise NnfarmError(
                "quantize.already_quantized",
                f"The model is quantized already: node {node.name or node.output[0]!r} is "
                f"{node.op_type}. Quantize the float model it was made from.",
                node=node.name,
                op_type=node.op_type,
            )


def _require_names(graph: onnx.GraphProto, wanted: Iterable[str]) -> None:
    known = {node.name for node in graph.node}
    if missing := sorted(set(wanted) - known):
        raise NnfarmError(
            "quantize.bad_option",
            f"The model has no node {', '.join(map(repr, missing))}.",
            nodes=missing,
        )


def _require_kept(graph: onnx.GraphProto, wanted: Iterable[str]) -> None:
    """An excluded node that is merged with its neighbour would be quantized with it unsaid."""
    known = {node.name for node in graph.node}
    if merged := sorted(set(wanted) - known):
        raise NnfarmError(
            "quantize.bad_option",
            f"Node {', '.join(map(repr, merged))} is folded into a neighbour before quantization "
            "(a constant, or a batch norm into its convolution): exclude that neighbour.",
            nodes=merged,
        )
