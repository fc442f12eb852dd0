"""`If`: the branch that is known, or both and a choice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from service.contracts.errors import NnfarmError
from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, weights
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import fold

SHAPE = [2, 1, 4]
X = weights(*SHAPE, seed=5)


def _branch(name: str, *nodes: onnx.NodeProto, **constants: np.ndarray) -> onnx.GraphProto:
    tensors = [onnx.numpy_helper.from_array(array, key) for key, array in constants.items()]
    result = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [2, None, 4])
    return helper.make_graph(list(nodes), name, [], [result], tensors)


def _model(*condition: onnx.NodeProto, inner: str = "Tanh") -> onnx.ModelProto:
    """Both branches use names of the graph around them, and one name of their own twice."""
    then = _branch("then", helper.make_node("Concat", ["h", "h"], ["d"], axis=1))
    if inner == "Tanh":
        scaled = helper.make_node("Mul", ["h", "s"], ["m"])
        then = _branch("then", scaled, helper.make_node("Tanh", ["m"], ["t"]), s=np.float32(2))
    half = helper.make_node("Mul", ["h", "s"], ["m"])
    other = _branch("else", half, helper.make_node("Abs", ["m"], ["t"]), s=np.float32(0.5))
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        *condition,
        helper.make_node("If", ["c"], ["b"], name="choice", then_branch=then, else_branch=other),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    constants = {"one": np.array(1), "zero": np.float32(0), "first": np.array([0])}
    return make_model(nodes, {"x": SHAPE}, ["y"], constants)


def _by_shape(length: int) -> list[onnx.NodeProto]:
    """Whether the second axis has so many elements, as PyTorch's exporter asks."""
    value = helper.make_tensor("v", TensorProto.INT64, [], [length])
    return [
        helper.make_node("Shape", ["x"], ["dims"]),
        helper.make_node("Gather", ["dims", "one"], ["size"]),
        helper.make_node("Constant", [], ["wanted"], value=value),
        helper.make_node("Equal", ["size", "wanted"], ["c"]),
    ]


def _by_value() -> list[onnx.NodeProto]:
    return [
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("Greater", ["top", "zero"], ["c"]),
    ]


MODELS = {
    "longer": _model(*_by_shape(1), inner="Concat"),
    "then": _model(*_by_shape(1)),
    "else": _model(*_by_shape(3)),
    "computed": _model(*_by_value()),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_branch_gives_the_numbers_of_onnx_runtime(name: str, sign: int, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODELS[name], path)
    data = sign * np.abs(X)
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": data})
    graph = fold(import_onnx(path).graph)
    (got,) = on_host(graph)(data)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.shape == want.shape
    assert "If" in {node.op_type for node in graph.nodes}
    known = name != "computed"
    assert known == ("relax.where" not in {b.op_name for b in graph.bindings})


def test_branches_of_different_form_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(*_by_value(), inner="Concat"), path)
    with pytest.raises(NnfarmError, match="choice") as caught:
        import_onnx(path)
    assert caught.value.code == "compile.unsupported_operation"
