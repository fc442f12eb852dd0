"""ONNX operations that have no form with fixed shapes and a fixed order, and why."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from service.contracts.errors import NnfarmError

_VALUES = "the shape of its result depends on values; shapes have to be known when it is compiled"
_CONTROL = "Loops (Loop, Scan) are not supported; export the model unrolled or traced"

_REASONS: Mapping[str, str] = {
    "Compress": _VALUES,
    "Loop": _CONTROL,
    "NonMaxSuppression": f"{_VALUES}; compile up to the boxes and their scores, and select after",
    "NonZero": _VALUES,
    "Scan": _CONTROL,
    "Unique": _VALUES,
}


def refuse_what_cannot_be_compiled(graph: onnx.GraphProto) -> None:
    """Refuse the first node of such an operation; nodes have names.

    Raises:
        NnfarmError: `compile.unsupported_operation`.
    """
    for node in graph.node:
        if reason := _REASONS.get(node.op_type):
            raise NnfarmError(
                "compile.unsupported_operation",
                f"Node {node.name!r} ({node.op_type}): {reason}.",
                node=node.name,
                op_type=node.op_type,
            )


def unknown_operation(graph: onnx.GraphProto, names: str) -> NnfarmError:
    """The error for operations nobody converts.

    Args:
        graph: whose nodes have names.
        names: text that holds the types of the operations.
    """
    known = set(names.replace(",", " ").split())
    node = next((node for node in graph.node if node.op_type in known), None)
    where = f" at node {node.name!r}" if node is not None else ""
    op_type = node.op_type if node is not None else ""
    return NnfarmError(
        "compile.unsupported_operation",
        f"{names}{where}.",
        op_type=op_type,
        node=node.name if node is not None else "",
    )
