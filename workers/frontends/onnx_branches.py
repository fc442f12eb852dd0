"""`If`: the branch that is known to be taken written in place, else both and a choice.

PyTorch's older exporter writes one where it does not know whether an axis has one element; with
fixed shapes the answer is a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import onnx
from onnx import helper
from tvm import relax

from service.contracts.errors import NnfarmError
from workers.graph.graph import constant_value, dtype_of, static_shape

BRANCHES = "Branches"
"""What `If` is called while a model is imported: at the sight of one, TVM's importer gives up
dataflow form."""

Inline = Callable[[onnx.GraphProto], list[relax.Expr]]
"""Emits the nodes of a branch and gives its results."""


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those of its branches, which see its values."""
    yield graph
    for node in graph.node:
        if node.op_type == "If":
            for attribute in node.attribute:
                yield from all_graphs(attribute.g)


def hide_branches(graphs: Sequence[onnx.GraphProto]) -> None:
    """Call every `If` by its other name; changed in place."""
    for graph in graphs:
        for node in graph.node:
            if node.op_type == "If":
                node.op_type = BRANCHES


def original_type(op_type: str) -> str:
    """The name of an operation in the model."""
    return "If" if op_type == BRANCHES else op_type


def branch_results(
    node: onnx.NodeProto,
    condition: relax.Expr,
    inline: Inline,
    emit: Callable[[relax.Expr], relax.Expr],
) -> list[relax.Expr]:
    """Values of an `If`.

    Args:
        node: of the model.
        condition: one truth value.
        inline: emits a branch.
        emit: binds an expression.

    Raises:
        NnfarmError: `compile.unsupported_operation`, results whose form depends on the branch.
    """
    branches = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    known = constant_value(condition)
    if known is not None:
        return inline(branches["then_branch" if known.item() else "else_branch"])
    pairs = zip(inline(branches["then_branch"]), inline(branches["else_branch"]), strict=True)
    return [emit(_chosen(node, condition, yes, no)) for yes, no in pairs]


def _chosen(
    node: onnx.NodeProto, condition: relax.Expr, yes: relax.Expr, no: relax.Expr
) -> relax.Expr:
    shape = static_shape(yes)
    if shape is None or (shape, dtype_of(yes)) != (static_shape(no), dtype_of(no)):
        raise NnfarmError(
            "compile.unsupported_operation",
            f"Node {node.name!r} (If): its condition is computed, and the shape or type of its "
            "result depends on it.",
            node=node.name,
            op_type="If",
        )
    return relax.op.where(relax.op.reshape(condition, (1,) * len(shape)), yes, no)
