"""What an ONNX file must keep to be worth a worker's time; imported only by the inspection."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, defs

from service.contracts.errors import NnfarmError
from service.contracts.models_onnx import graphs
from service.contracts.tensors import ModelSignature
from service.resources.models.onnx_files import (
    ModelFiles,
    attach_external_data,
    empty_external_tensors,
    open_files,
)
from service.resources.models.onnx_order import check_order
from service.resources.models.onnx_tensors import check_dims, signature_of

MIN_OPSET = 7
"""Older opsets have other broadcasting rules; converting is the user's business."""

_DEFAULT_DOMAIN = ("", "ai.onnx")

_RUNTIME_DOMAIN = "com.microsoft"
_RUNTIME_OPERATIONS = {
    "BiasGelu",
    "DequantizeLinear",
    "EmbedLayerNormalization",
    "FastGelu",
    "Gelu",
    "MatMulNBits",
    "QGemm",
    "QLinearAdd",
    "QLinearAveragePool",
    "QLinearConcat",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearSoftmax",
    "QuantizeLinear",
    "SkipLayerNormalization",
}
"""What ONNX Runtime's own tools put into models and the workers import."""


def inspect_onnx(path: Path) -> ModelSignature:
    """Check a model file and give its signature; the cheap and telling checks come first.

    Raises:
        NnfarmError: a ``model.*`` code.
    """
    with open_files(path) as files:
        model = _load(files)
        _check_opset(model)
        for graph in (model.graph, *(_body(function) for function in model.functions)):
            for inner in graphs(graph):
                check_dims(inner)
        attach_external_data(model, files)
    _check_operations(model)
    check_order(model.graph)
    signature = signature_of(model)
    _check_rest(model)
    return signature


def _load(files: ModelFiles) -> ModelProto:
    try:
        with files.open_model() as file:
            model = onnx.load(file, load_external_data=False)
    except DecodeError as error:
        raise NnfarmError(
            "model.unreadable", "The file is damaged, truncated or no ONNX model at all."
        ) from error
    if not model.HasField("graph") or not model.ir_version:
        raise NnfarmError("model.unreadable", "The file holds no ONNX graph.")
    return model


def _check_opset(model: ModelProto) -> None:
    newest = defs.onnx_opset_version()
    versions = [entry.version for entry in model.opset_import if entry.domain in _DEFAULT_DOMAIN]
    if not versions:
        raise NnfarmError("model.invalid", "The model does not say which opset it uses.")
    for version in versions:
        if not MIN_OPSET <= version <= newest:
            raise NnfarmError(
                "model.unsupported_opset",
                f"The model uses opset {version}; {MIN_OPSET} to {newest} are supported.",
                opset=version,
                min_opset=MIN_OPSET,
                max_opset=newest,
            )


def _check_operations(model: ModelProto) -> None:
    functions = {(function.domain, function.name) for function in model.functions}
    bodies = [(model.graph, model.opset_import)]
    bodies += [(_body(function), function.opset_import) for function in model.functions]
    for body, imports in bodies:
        opsets = {entry.domain: entry.version for entry in imports}
        for graph in graphs(body):
            for node in graph.node:
                _check_operation(node, opsets, functions)


def _check_operation(
    node: NodeProto, opsets: dict[str, int], functions: set[tuple[str, str]]
) -> None:
    if (node.domain, node.op_type) in functions:
        return
    if node.domain == _RUNTIME_DOMAIN and node.op_type in _RUNTIME_OPERATIONS:
        return
    domain = "" if node.domain in _DEFAULT_DOMAIN else node.domain
    version = opsets.get(domain, opsets.get("ai.onnx") if domain == "" else None)
    if version is not None and defs.has(node.op_type, version, domain):
        return
    full_name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    where = f"opset {version}" if version is not None else "any opset the model imports"
    raise NnfarmError(
        "model.unknown_operation",
        f"Operation {full_name} (node {node.name!r}) is not known in {where}.",
        operation=full_name,
        node=node.name,
    )


def _body(function: FunctionProto) -> GraphProto:
    """The nodes of a model's own function as a graph, to be checked like one."""
    return GraphProto(node=function.node)


def _check_rest(model: ModelProto) -> None:
    empty_external_tensors(model)
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise NnfarmError("model.invalid", f"The ONNX checker says: {error}") from error
