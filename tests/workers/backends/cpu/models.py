"""Small ONNX models, and what ONNX Runtime says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]

TOLERANCE = 2e-5
"""Of the largest output: float32 sums in another order."""


def single_node(
    op: str, shape: Sequence[int], *weights: Array, domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    """A model of one operator: `x`, then constants."""
    names = [f"w{i}" for i in range(len(weights))]
    node = helper.make_node(op, ["x", *names], ["y"], domain=domain, **attributes)
    constants = [numpy_helper.from_array(w, n) for n, w in zip(names, weights, strict=True)]
    return network([node], {"x": shape}, constants)


def network(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    constants: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    """A model with the output `y`."""
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def feeds_of(model: onnx.ModelProto) -> dict[str, Array]:
    """Normal values, the same at every call."""
    random = np.random.default_rng(0)
    return {
        i.name: random.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(
            helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
        )
        for i in model.graph.input
    }


def reference(path: Path, feeds: dict[str, Array]) -> Array:
    """What ONNX Runtime computes."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    output: Array = session.run(None, feeds)[0]
    return output


def close(ours: Array, expected: Array, tolerance: float) -> None:
    assert ours.shape == expected.shape
    scale = max(float(np.abs(expected).max()), 1e-6)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance * scale)
