"""Models of float16: what accelerators have no operation for is composed, like of float32."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.workers.onnx_models import weights
from tests.workers.properties.phone import Phone

SHAPE = (1, 2, 6, 8)


def _constant(name: str, array: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, np.float16), name)


def _model() -> onnx.ModelProto:
    """A norm, a product of stacks, GELU written out, and what batch norm makes of it."""
    node = helper.make_node
    nodes = [
        node("LayerNormalization", ["x", "gain", "shift"], ["n"], name="norm"),
        node("Transpose", ["n"], ["t"], name="turn", perm=[0, 1, 3, 2]),
        node("MatMul", ["n", "t"], ["m"], name="scores"),
        node("Softmax", ["m"], ["s"], name="softmax"),
        node("MatMul", ["s", "n"], ["v"], name="values"),
        node("Div", ["v", "root"], ["d"], name="scaled"),
        node("Erf", ["d"], ["e"], name="erf"),
        node("Add", ["e", "one"], ["a"], name="above"),
        node("Mul", ["v", "a"], ["g"], name="gate"),
        node("Mul", ["g", "half"], ["h"], name="gelu"),
        node("BatchNormalization", ["h", "c", "b", "mean", "var"], ["y"], name="batch"),
    ]
    constants = {"gain": weights(8) * 60, "shift": weights(8, seed=1), "root": np.sqrt(2.0)}
    constants |= {"one": 1.0, "half": 0.5, "c": weights(2), "b": weights(2, seed=2)}
    constants |= {"mean": weights(2, seed=3), "var": weights(2) ** 2 + 1}
    border = [[helper.make_tensor_value_info(n, TensorProto.FLOAT16, SHAPE)] for n in ("x", "y")]
    initializers = [_constant(n, a) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "case", *border, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("level", [3, 7])
def test_a_network_of_float16_is_offloaded_whole(level: int, phone: Phone) -> None:
    # Squares of these numbers are no float16: the norm has to be wider inside.
    inputs = {"x": (weights(*SHAPE, seed=4) * 900).astype(np.float16)}
    model = _model()
    answer = phone.run(model, inputs, level)
    assert answer.rejected == ()
    assert len(answer.documents) == 1
    assert answer.outputs is not None
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
    assert answer.outputs[0].dtype == np.float16
    scale = float(np.abs(want).max())
    np.testing.assert_allclose(answer.outputs[0] / scale, want / scale, atol=5e-3)
