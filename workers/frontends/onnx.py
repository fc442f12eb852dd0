"""ONNX import through TVM's Relax importer, with node names kept and gaps closed."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
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


class _NamingImporter(onnx_frontend.ONNXGraphImporter):  # type: ignore[misc]
    """TVM's importer that emits each node's result as it goes and notes where each node ends.

    The base class leaves calls nested until something needs them; emitting at once makes "the
    bindings since the last note" exactly the bindings of one node.
    """

    def __init__(self) -> None:
        super().__init__({}, "float32", keep_params_in_input=False, sanitize=False)
        self.ends: list[relax.Var | None] = []
        self._reals: dict[relax.Var, relax.Expr] = {}

    def _check_for_unsupported_ops(self, graph: onnx.GraphProto) -> None:
        # The base class knows its own converters only.
        others = onnx.GraphProto()
        others.node.extend(n for n in graph.node if n.op_type not in onnx_converters.CONVERTERS)
        super()._check_for_unsupported_ops(others)

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
    name_nodes(model.graph)
    refuse_what_cannot_be_compiled(model.graph)
    spell_out_constants(model.graph)
    widen_constants(model.graph)
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    importer = _NamingImporter()
    log = io.StringIO()
    try:
        # The importer prints the offending node and warns about every symbolic dimension.
        with contextlib.redirect_stdout(log), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importer.from_onnx(model.graph, opset)
    except tvm.error.OpNotImplemented as error:
        raise unknown_operation(model.graph, _last_line(error)) from error
    except Exception as error:
        node = _node_at(model.graph, len(importer.ends))
        reason = open_dimensions(model.graph) or _last_line(error)
        raise NnfarmError(
            "compile.unsupported_model",
            f"The importer cannot take node {node.name!r} ({node.op_type}): {reason}",
            node=node.name,
            op_type=node.op_type,
        ) from error
    return ImportedModel(_graph(module, model.graph, importer.ends), signature)


def _node_at(graph: onnx.GraphProto, index: int) -> onnx.NodeProto:
    node: onnx.NodeProto = graph.node[min(index, len(graph.node) - 1)]
    return node


def _graph(module: tvm.IRModule, proto: onnx.GraphProto, ends: list[relax.Var | None]) -> Graph:
    """Attach origins: bindings are emitted node by node, so each node's last variable ends it."""
    if len(ends) != len(proto.node):
        # `If` bodies are converted inside their node; nothing inside has a name of its own.
        raise NnfarmError(
            "compile.unsupported_operation", "Control flow (If, Loop, Scan) is not supported."
        )
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
    nodes = tuple(OriginalNode(i, n.name, n.op_type) for i, n in enumerate(proto.node))
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
