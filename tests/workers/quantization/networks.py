"""A small image network with what quantization tools stumble over, and samples for it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from service.contracts.tensors import DType, ModelSignature, TensorSpec

SIGNATURE = ModelSignature(
    inputs=(TensorSpec(name="image", dtype=DType.FLOAT32, shape=(-1, 3, 8, 8)),),
    outputs=(TensorSpec(name="scores", dtype=DType.FLOAT32, shape=(-1, 4)),),
)


def network(opset: int = 17) -> onnx.ModelProto:
    """Conv, batch norm, relu6, average, fully connected, softmax; an open batch, one name less."""
    draw = np.random.default_rng(7)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(draw.normal(0, 0.5, shape).astype(np.float32), name)

    ones = numpy_helper.from_array(np.ones(6, np.float32), "ones")
    zeros = numpy_helper.from_array(np.zeros(6, np.float32), "zeros")
    limits = [
        numpy_helper.from_array(np.array(value, np.float32), name)
        for name, value in (("low", 0), ("high", 6))
    ]
    make = helper.make_node
    nodes = [
        make("Conv", ["image", "w"], ["conv"], name="conv", pads=[1, 1, 1, 1]),
        make("BatchNormalization", ["conv", "ones", "b", "zeros", "ones"], ["norm"], name="norm"),
        make("Clip", ["norm", "low", "high"], ["relu6"], name="relu6"),
        make("GlobalAveragePool", ["relu6"], ["average"]),
        make("Flatten", ["average"], ["flat"], name="flatten"),
        make("Gemm", ["flat", "v", "c"], ["logits"], name="head"),
        make("Softmax", ["logits"], ["scores"], name="softmax", axis=1),
    ]
    border = [
        [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, ["batch", *t.shape[1:]])]
        for t in (*SIGNATURE.inputs, *SIGNATURE.outputs)
    ]
    initializers = [weights("w", 6, 3, 3, 3), weights("b", 6), weights("v", 6, 4), weights("c", 4)]
    graph = helper.make_graph(nodes, "g", *border, [*initializers, ones, zeros, *limits])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def images(count: int = 40) -> np.ndarray:
    return np.random.default_rng(3).normal(0, 1, (count, 3, 8, 8)).astype(np.float32)


def packed(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def node_types(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}
