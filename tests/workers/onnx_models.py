"""Small ONNX models made in the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def make_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    output_types: Mapping[str, int] | None = None,
    input_type: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A checked model; shapes of outputs are inferred."""
    graph = helper.make_graph(
        list(nodes),
        "case",
        [helper.make_tensor_value_info(n, input_type, list(s)) for n, s in inputs.items()],
        [
            helper.make_tensor_value_info(n, (output_types or {}).get(n, TensorProto.FLOAT), None)
            for n in outputs
        ],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    onnx.checker.check_model(model)
    return model


def single(
    op: str,
    inputs: Mapping[str, Sequence[int | str]],
    constants: Mapping[str, Any] | None = None,
    args: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    output_types: Mapping[str, int] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node named "node"."""
    names = list(args) if args is not None else [*inputs, *(constants or {})]
    node = helper.make_node(op, names, list(outputs), name="node", **attributes)
    return make_model([node], inputs, outputs, constants, opset, output_types)


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    """Reproducible float32 values around zero."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
