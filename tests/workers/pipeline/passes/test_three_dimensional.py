"""Windows over volumes: ONNX Runtime's numbers, and all of it on an accelerator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.workers.onnx_models import make_model, single, weights
from tests.workers.properties.phone import Phone

VOLUME = {"x": [1, 4, 5, 6, 7]}
TWO = {"x": [2, 4, 5, 6, 7]}
W, B = weights(6, 4, 3, 3, 2), weights(6)


def _network() -> onnx.ModelProto:
    """Two branches of a volume, joined, pooled and averaged."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["1"], pads=[1, 1, 0, 1, 1, 1]),
        helper.make_node("Relu", ["1"], ["2"]),
        helper.make_node("Conv", ["2", "v"], ["3"]),
        helper.make_node("Mul", ["2", "s"], ["4"]),
        helper.make_node("Add", ["3", "4"], ["5"]),
        helper.make_node("Concat", ["2", "5"], ["6"], axis=1),
        helper.make_node("MaxPool", ["6"], ["7"], kernel_shape=[1, 2, 2], strides=[1, 2, 2]),
        helper.make_node("ReduceMean", ["7"], ["8"], axes=[2, 3, 4], keepdims=0),
        helper.make_node("Gemm", ["8", "g"], ["y"]),
    ]
    constants = {
        "w": W, "b": B, "v": weights(6, 6, 1, 1, 1), "s": weights(6, 1, 1, 1),
        "g": weights(12, 5),
    }  # fmt: skip
    return make_model(nodes, TWO, ["y"], constants)


MODELS = {
    "conv": single("Conv", VOLUME, {"w": W, "b": B}, pads=[1, 0, 1, 1, 0, 1], strides=[2, 1, 2]),
    "conv of two": single("Conv", TWO, {"w": W}, pads=[1] * 6, strides=[2, 2, 1]),
    "conv dilated": single("Conv", VOLUME, {"w": W}, dilations=[2, 1, 2]),
    "conv in groups": single("Conv", TWO, {"w": weights(4, 1, 3, 3, 3)}, group=4, pads=[1] * 6),
    "max pool": single(
        "MaxPool", VOLUME, kernel_shape=[2, 3, 2], strides=[2, 2, 1], pads=[1, 1, 0, 0, 1, 0]
    ),
    "average pool": single("AveragePool", TWO, kernel_shape=[3, 2, 2], strides=[1, 2, 2]),
    "network": _network(),
}


@pytest.mark.parametrize("name", MODELS)
def test_windows_of_volumes_are_offloaded(name: str, phone: Phone) -> None:
    shape = [d.dim_value for d in MODELS[name].graph.input[0].type.tensor_type.shape.dim]
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    answer = phone.compare(MODELS[name], {"x": data}, 4)
    assert answer.outputs is not None
    assert answer.rejected == ()
    assert len(answer.documents) == 1


def test_a_window_that_leaves_the_padding_stays_as_it_is(phone: Phone) -> None:
    model = single("MaxPool", VOLUME, kernel_shape=[2] * 3, strides=[2] * 3, ceil_mode=1)
    answer = phone.run(model, {"x": weights(1, 4, 5, 6, 7)}, 4)
    assert answer.rejected == ("MaxPool",)
