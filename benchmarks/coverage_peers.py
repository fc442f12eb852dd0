"""What two other NNAPI paths say they would offload of a model.

Neither is run: TVM's NNAPI codegen is not in its wheel, and ONNX Runtime's execution provider is
made for Android only. Both are taken at their word. ONNX Runtime's checker knows operators, but
neither feature levels nor what an operator's attributes do to its support.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import tvm
from onnxruntime.tools.mobile_helpers import usability_checker
from onnxruntime.tools.onnx_model_utils import ModelProtoWithShapeInfo
from tvm import relax
from tvm.relax.backend.contrib.nnapi import partition_for_nnapi

from workers.graph.graph import Binding, Graph
from workers.pipeline.cost import cost_of


@dataclass(frozen=True)
class Coverage:
    """Offloaded share of a model. Operations are the path's own units: nodes or Relax calls."""

    offloaded: int
    operations: int
    macs_share: float
    subgraphs: int

    @property
    def share(self) -> float:
        """Offloaded operations of all, 0 to 1."""
        return self.offloaded / self.operations if self.operations else 0.0

    @property
    def left(self) -> int:
        """Operations for the CPU."""
        return self.operations - self.offloaded


def tvm_coverage(graph: Graph, feature_level: int) -> Coverage:
    """TVM's partition_for_nnapi (RFC 0109).

    Args:
        graph: imported and folded, NCHW: the form its patterns are written for.
        feature_level: NNAPI feature level.
    """
    partitioned = partition_for_nnapi(graph.module, feature_level)
    total = list(_calls(graph.function))
    subgraphs = [
        function
        for function in partitioned.functions.values()
        if isinstance(function, relax.Function) and _attribute(function, "Codegen") == "nnapi"
    ]
    inside = [call for subgraph in subgraphs for call in _inner_calls(subgraph, partitioned)]
    macs = sum(cost_of(call).macs for call in total)
    taken = sum(cost_of(call).macs for call in inside)
    return Coverage(len(inside), len(total), taken / macs if macs else 0.0, len(subgraphs))


def _attribute(function: relax.Function, name: str) -> str:
    return str(function.attrs[name]) if function.attrs and name in function.attrs else ""


def _calls(function: relax.Function) -> Iterable[Binding]:
    """Calls of Relax operators."""
    for block in function.body.blocks:
        for bound in block.bindings:
            if not isinstance(bound, relax.VarBinding):
                continue
            binding = Binding(bound.var, bound.value)
            if binding.call is not None:
                yield binding


def _inner_calls(function: relax.Function, module: tvm.IRModule) -> Iterable[Binding]:
    """Calls of a subgraph; its composite functions stand inside it or beside it."""
    yield from _calls(function)
    for block in function.body.blocks:
        for bound in block.bindings:
            value = bound.value
            if isinstance(value, relax.Function):
                yield from _inner_calls(value, module)
            elif isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.GlobalVar):
                yield from _inner_calls(module[value.op], module)


def ort_coverage(path: Path, macs_by_name: Mapping[str, int]) -> Coverage:
    """ONNX Runtime's usability checker for its NNAPI execution provider; it knows no levels.

    Args:
        path: ONNX model with fixed shapes.
        macs_by_name: multiply-accumulates by node name.
    """
    model = ModelProtoWithShapeInfo(path).model_with_shape_info
    # Constants that are nodes are no operations.
    constants = [node for node in model.graph.node if node.op_type == "Constant"]
    for node in constants:
        tensor = onnx.numpy_helper.to_array(node.attribute[0].t)
        model.graph.initializer.append(onnx.numpy_helper.from_array(tensor, node.output[0]))
        model.graph.node.remove(node)
    found = usability_checker.check_nnapi_partitions(model, require_fixed_input_sizes=True)
    names = [node.name for group in found.supported_groups for node in group]
    macs = sum(macs_by_name.values())
    taken = sum(macs_by_name.get(name, 0) for name in names)
    share = taken / macs if macs else 0.0
    return Coverage(found.num_supported_nodes, found.num_nodes, share, found.num_partitions)
