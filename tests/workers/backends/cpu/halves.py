"""float16 networks."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.workers.backends.cpu.models import Array

HALF = TensorProto.FLOAT16


def half(*shape: int) -> Array:
    return (np.random.default_rng(5).standard_normal(shape) * 0.3).astype(np.float16)


def half_model() -> onnx.ModelProto:
    """Convolutions, a detour through float32, a matrix, a comparison."""
    tensors = {
        "w0": half(16, 3, 3, 3), "b0": half(16), "w1": half(16, 1, 3, 3), "w2": half(16, 10),
        "small": np.array(0.1, np.float16), "zero": np.array(0, np.float16),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1] * 4),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], pads=[1] * 4, group=16),
        helper.make_node("Cast", ["c1"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Tanh", ["wide"], ["t"]),
        helper.make_node("Cast", ["t"], ["narrow"], to=HALF),
        helper.make_node("GlobalAveragePool", ["narrow"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["m"]),
        helper.make_node("Greater", ["m", "zero"], ["above"]),
        helper.make_node("Where", ["above", "m", "small"], ["chosen"]),
        helper.make_node("Softmax", ["chosen"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "halves",
        [helper.make_tensor_value_info("x", HALF, (1, 3, 12, 12))],
        [helper.make_tensor_value_info("y", HALF, [1, 10])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def long_sums(depth: int) -> onnx.ModelProto:
    """A convolution of 3x3 over images of a depth, and a product over what it gives."""
    tensors = {"w": half(16, depth, 3, 3) / 10, "v": half(16, 24)}
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["t", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "sums",
        [helper.make_tensor_value_info("x", HALF, (1, depth, 7, 5))],
        [helper.make_tensor_value_info("y", HALF, [1, 7, 5, 24])],
        [numpy_helper.from_array(array.astype(np.float16), n) for n, array in tensors.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
