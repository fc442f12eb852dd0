"""The graph of the fixture's model: what each operation needs from NNAPI.

The shape is a keyword spotter's (convolutions, an attention block, a head), chosen so that every
kind of answer occurs: offloaded everywhere, from some level on, never, and folded.
"""

from __future__ import annotations

from typing import NamedTuple

from service.contracts.artifacts import (
    ExplanationReport,
    LevelCoverage,
    OperationPlacement,
    OperationReport,
    Rejection,
)

NEVER = 99
"""A level no phone has: NNAPI does not take the operation at all."""


class Node(NamedTuple):
    name: str
    op_type: str
    nnapi: tuple[str, ...]
    level: int


def _block(index: int) -> list[Node]:
    path = f"/features/features.{index}"
    return [
        Node(f"{path}/expand/Conv", "Conv", ("CONV_2D",), 1),
        Node(f"{path}/expand/Clip", "Clip", ("RELU6",), 1),
        Node(f"{path}/depthwise/Conv", "Conv", ("DEPTHWISE_CONV_2D",), 1),
        Node(f"{path}/depthwise/HardSwish", "HardSwish", ("HARD_SWISH",), 4),
        Node(f"{path}/project/Conv", "Conv", ("CONV_2D",), 1),
        Node(f"{path}/Add", "Add", ("ADD",), 1),
    ]


def _attention() -> list[Node]:
    path = "/encoder/attention"
    return [
        Node(f"{path}/Transpose", "Transpose", ("TRANSPOSE",), 2),
        Node(f"{path}/q/Gemm", "Gemm", ("FULLY_CONNECTED",), 1),
        Node(f"{path}/k/Gemm", "Gemm", ("FULLY_CONNECTED",), 1),
        Node(f"{path}/v/Gemm", "Gemm", ("FULLY_CONNECTED",), 1),
        Node(f"{path}/qk/MatMul", "MatMul", ("BATCH_MATMUL",), 6),
        Node(f"{path}/Softmax", "Softmax", ("SOFTMAX",), 1),
        Node(f"{path}/qkv/MatMul", "MatMul", ("BATCH_MATMUL",), 6),
        Node(f"{path}/Einsum", "Einsum", (), NEVER),
    ]


GRAPH: tuple[Node, ...] = (
    Node("/stem/Constant", "Constant", (), 0),
    Node("/stem/Conv", "Conv", ("CONV_2D",), 1),
    Node("/stem/BatchNormalization", "BatchNormalization", (), 0),
    Node("/stem/Relu", "Relu", ("RELU",), 1),
    *(node for index in range(1, 6) for node in _block(index)),
    *_attention(),
    Node("/head/ReduceMean", "ReduceMean", ("MEAN",), 2),
    Node("/head/Flatten", "Flatten", ("RESHAPE",), 1),
    Node("/head/Gemm", "Gemm", ("FULLY_CONNECTED",), 1),
    Node("/head/PRelu", "PRelu", ("PRELU",), 3),
    Node("/head/Erf", "Erf", (), NEVER),
    Node("/head/classifier/Gemm", "Gemm", ("FULLY_CONNECTED",), 1),
    Node("/head/Softmax", "Softmax", ("SOFTMAX",), 1),
)


def explain(level: int) -> ExplanationReport:
    """The report of the fixture's graph at one feature level, with what the others would do."""
    what_if = tuple(
        LevelCoverage(
            feature_level=other,
            offloaded_count=report.offloaded_count,
            subgraph_count=report.subgraph_count,
            offloaded_macs=3 * other,
            offloaded_bytes=0,
        )
        for other, report in ((n, _explain(n)) for n in range(1, 9))
    )
    return _explain(level).model_copy(update={"what_if": what_if, "macs": 24})


def _explain(level: int) -> ExplanationReport:
    operations: list[OperationReport] = []
    subgraph, inside = -1, False
    for node in GRAPH:
        if node.level == 0:
            placement = OperationPlacement.FOLDED
            operations.append(
                OperationReport(name=node.name, op_type=node.op_type, placement=placement)
            )
            continue
        taken = node.level <= level
        subgraph += int(taken and not inside)
        inside = taken
        operations.append(_offloaded(node, subgraph) if taken else _on_cpu(node, level))
    counted = [one for one in operations if one.placement is not OperationPlacement.FOLDED]
    return ExplanationReport(
        feature_level=level,
        operations=tuple(operations),
        offloaded_count=sum(one.placement is OperationPlacement.NNAPI for one in counted),
        operation_count=len(counted),
        subgraph_count=subgraph + 1,
    )


def _offloaded(node: Node, subgraph: int) -> OperationReport:
    return OperationReport(
        name=node.name,
        op_type=node.op_type,
        placement=OperationPlacement.NNAPI,
        subgraph=subgraph,
        nnapi_operations=node.nnapi,
    )


def _on_cpu(node: Node, level: int) -> OperationReport:
    if node.level == NEVER:
        rejection = Rejection(
            code="nnapi.no_operation",
            sentence=f"NNAPI has no operation that computes {node.op_type}.",
            needed_level=None,
        )
    else:
        rejection = Rejection(
            code="nnapi.needs_level",
            sentence=f"{node.nnapi[0]} needs NNAPI feature level {node.level}; "
            f"level {level} was asked.",
            needed_level=node.level,
        )
    return OperationReport(
        name=node.name,
        op_type=node.op_type,
        placement=OperationPlacement.CPU,
        rejection=rejection,
    )
