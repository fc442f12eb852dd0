"""What every reader of an ONNX model does first: a newer operator set, and names for all nodes."""

from __future__ import annotations

import onnx
from onnx import version_converter

from service.contracts.errors import NnfarmError

LIFTED_OPSET = 17
"""What models of older operator sets are converted to."""

_ONNX_DOMAINS = ("", "ai.onnx")


def lift(model: onnx.ModelProto, oldest_opset: int) -> onnx.ModelProto:
    """The model in an operator set that is not older than the oldest one a reader takes.

    Raises:
        NnfarmError: `model.unsupported_opset`.
    """
    opset = next((o.version for o in model.opset_import if o.domain in _ONNX_DOMAINS), 0)
    if opset >= oldest_opset:
        return model
    try:
        return version_converter.convert_version(model, LIFTED_OPSET)
    except Exception as error:
        raise NnfarmError(
            "model.unsupported_opset",
            f"Opset {opset} could not be converted to {LIFTED_OPSET}: {first_line(error)}",
            opset=opset,
        ) from error


def name_nodes(graph: onnx.GraphProto) -> None:
    """Give nodes without a name the one that reports show: that of their first output."""
    for index, node in enumerate(graph.node):
        if not node.name:
            # Optional outputs that are left out have the name "".
            node.name = next(filter(None, node.output), f"{node.op_type}_{index}")


def first_line(error: BaseException) -> str:
    """What an error of a library says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
