"""ONNX import through TVM's Relax importer, with node names kept and gaps closed."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import tvm
from onnx import helper
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from service.contracts.errors import NnfarmError
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from workers.frontends import onnx_converters
from workers.frontends.imported import ImportedModel
from workers.frontends.onnx_branches import (
    BRANCHES,
    all_graphs,
    branch_results,
    hide_branches,
    original_type,
)
from workers.frontends.onnx_constants import spell_out_constants, widen_constants
from workers.frontends.onnx_files import onnx_path
from workers.frontends.onnx_lifting import lift, name_nodes
from workers.frontends.onnx_operands import Scope
from workers.frontends.onnx_refusals import refuse_what_cannot_be_compiled, unknown_operation
from workers.frontends.onnx_shapes import fix_shapes, open_dimensions
from workers.graph.evaluation import value_of_call
from workers.graph.graph import Graph, OriginalNode

OLDEST_DIRECT_OPSET = 11
"""Below it attributes became inputs (Clip, Pad, Slice, Upsample): the model is lifted first."""


@dataclass(frozen=True)
class _Nodes:
    """Some of a graph's nodes, not copied: constants among them may be large."""

    node: Sequence[onnx.NodeProto]


class _NamingImporter(onnx_frontend.ONNXGraphImporter):  # type: ignore[misc]
    """TVM's importer that emits each node's result as it goes and notes where each node ends.

    The base class leaves calls nested until something needs them; emitting at once makes "the
    bindings since the last note" exactly the bindings of one node.
    """

    _nodes: dict[str, relax.Expr]

    def __init__(self) -> None:
        super().__init__({}, "float32", keep_params_in_input=False, sanitize=False)
        self.ends: list[relax.Var | None] = []
        self._reals: dict[relax.Var, relax.Expr] = {}

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        # The base class knows its own converters only.
        others = onnx.GraphProto()
        known = (*onnx_converters.CONVERTERS, BRANCHES)
        others.node.extend(n for n in graph.node if n.op_type not in known)
        super()._check_for_unsupported_ops(others)

    def _construct_nodes(self, graph: onnx.GraphProto) -> None:
        """Nodes up to a branch at once; all that a branch emits is of its node."""
        rest: list[onnx.NodeProto] = []
        for node in graph.node:
            if node.op_type != BRANCHES:
                rest.append(node)
                continue
            super()._construct_nodes(_Nodes(rest))
            rest, before = [], len(self.ends)
            results = branch_results(node, self._nodes[node.input[0]], self._inline, self.bb.emit)
            self._nodes.update(zip(node.output, results, strict=True))
            inner = [*self.ends[before:], *(self._last_var(result) for result in results)]
            self.ends[before:] = [next((v for v in reversed(inner) if v is not None), None)]
        super()._construct_nodes(_Nodes(rest))

    def _inline(self, branch: onnx.GraphProto) -> list[relax.Expr]:
        """Results of a branch; its names are its own."""
        refuse_what_cannot_be_compiled(branch)
        self._check_for_unsupported_ops(branch)
        outside = self._nodes
        self._nodes = dict(outside)
        self._parse_graph_initializers(branch)
        self._construct_nodes(branch)
        results = [self._nodes[output.name] for output in branch.output]
        self._nodes = outside
        return results

    def _convert_operator(
        self, op_name: str, inputs: list[relax.Expr], attrs: dict[str, object], opset: int
    ) -> relax.Expr:
        convert = onnx_converters.CONVERTERS.get(op_name)
        scope = Scope(opset, self.bb.emit, self._reals)
        result = convert(inputs, attrs, scope) if convert is not None else None
        if result is None:
            result = super()._convert_operator(op_name, inputs, attrs, opset)
        else:
            result = self.bb.normalize(result)
        if isinstance(result, relax.Call):
            known = self._known(result)
            result = known if known is not None else self.bb.emit(result)
        elif isinstance(result, relax.Tuple):
            result = relax.Tuple([self._emit_call(item) for item in result.fields])
        self.ends.append(self._last_var(result))
        return result

    @staticmethod
    def _known(call: relax.Call) -> relax.Expr | None:
        """Numbers computed from constants, at once: converters after it ask for constants."""
        if not isinstance(call.op, tvm.ir.Op) or not isinstance(call.ty, relax.TensorType):
            return None
        array = value_of_call(call)
        if array is None:
            return None
        return relax.const(np.asarray(array, order="C"), array.dtype.name)

    def _emit_call(self, expr: relax.Expr) -> relax.Expr:
        return self.bb.emit(expr) if isinstance(expr, relax.Call) else expr

    @staticmethod
    def _last_var(result: relax.Expr) -> relax.Var | None:
        if isinstance(result, relax.Tuple):
            last = [item for item in result.fields if isinstance(item, relax.Var)]
            return last[-1] if last else None
        return result if isinstance(result, relax.Var) else None


def import_onnx(
    path: Path, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> ImportedModel:
    """Read an ONNX file into a graph.

    Args:
        path: the model: a file, or an archive of it and its external data.
        input_shapes: shapes of inputs whose model leaves dimensions open.

    Raises:
        NnfarmError: `model.unreadable`, `model.bad_archive`, `compile.unsupported_operation`,
            `compile.unsupported_model`, `compile.bad_option`.
    """
    file = onnx_path(path)
    try:
        model = onnx.load(file)
    except Exception as error:
        raise NnfarmError("model.unreadable", f"The ONNX file cannot be read: {error}") from error
    fix_shapes(model.graph, input_shapes or {})
    signature = _signature(model.graph)
    model = lift(model, OLDEST_DIRECT_OPSET)
    graphs = list(all_graphs(model.graph))
    for graph in graphs:
        name_nodes(graph)
    refuse_what_cannot_be_compiled(model.graph)
    for graph in graphs:
        spell_out_constants(graph)
        widen_constants(graph)
    hide_branches(graphs)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    importer = _NamingImporter()
    log = io.StringIO()
    try:
        # The importer prints the offending node and warns about every symbolic dimension.
        with contextlib.redirect_stdout(log), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importer.from_onnx(model.graph, opset)
    except NnfarmError:
        raise
    except tvm.error.OpNotImplemented as error:
        raise unknown_operation(model.graph, _last_line(error)) from error
    except Exception as error:
        node = _node_at(model.graph, len(importer.ends))
        op_type = original_type(node.op_type)
        reason = open_dimensions(model.graph) or _last_line(error)
        raise NnfarmError(
            "compile.unsupported_model",
            f"The importer cannot take node {node.name!r} ({op_type}): {reason}",
            node=node.name,
            op_type=op_type,
        ) from error
    return ImportedModel(_graph(module, model.graph, importer.ends), signature)


def _node_at(graph: onnx.GraphProto, index: int) -> onnx.NodeProto:
    node: onnx.NodeProto = graph.node[min(index, len(graph.node) - 1)]
    return node


def _graph(module: tvm.IRModule, proto: onnx.GraphProto, ends: list[relax.Var | None]) -> Graph:
    """Attach origins: bindings are emitted node by node, so each node's last variable ends it."""
    function = module["main"]
    order = [b.var for block in function.body.blocks for b in block.bindings]
    position = {var: i for i, var in enumerate(order)}
    origins: dict[relax.Var, frozenset[int]] = {}
    start = 0
    for index, last in enumerate(ends):
        if last is None or last not in position or position[last] < start:
            continue  # the node became a constant or an alias of its input
        for var in order[start : position[last] + 1]:
            origins[var] = frozenset({index})
        start = position[last] + 1
    nodes = tuple(
        OriginalNode(i, n.name, original_type(n.op_type)) for i, n in enumerate(proto.node)
    )
    return Graph(function, origins, nodes, module)


def _signature(graph: onnx.GraphProto) -> ModelSignature:
    initializers = {init.name for init in graph.initializer}
    inputs = tuple(_tensor_spec(v) for v in graph.input if v.name not in initializers)
    return ModelSignature(inputs=inputs, outputs=tuple(_tensor_spec(v) for v in graph.output))


def _last_line(error: BaseException) -> str:
    """What TVM says at the end of its traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__


def _tensor_spec(value: onnx.ValueInfoProto) -> TensorSpec:
    tensor = value.type.tensor_type
    try:
        dtype = DType(helper.tensor_dtype_to_np_dtype(tensor.elem_type).name)
    except (KeyError, ValueError) as error:
        raise NnfarmError(
            "compile.unsupported_model",
            f"Tensor {value.name!r} has an element type that cannot cross the model's border.",
            tensor=value.name,
        ) from error
    dims = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
    return TensorSpec(name=value.name, dtype=dtype, shape=dims)
