"""QOperator models that move integers between their layers: one subgraph, the same integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tests.workers.frontends.hosts import on_host
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import fold, normalise
from workers.pipeline.stages.partition import partition

SCALE = ("s", "z")


def _model() -> onnx.ModelProto:
    """Two products with a reshape, a transpose and a slice of the integers between them."""
    generator = np.random.default_rng(4)
    constants = {
        "s": np.float32(0.05),
        "z": np.uint8(120),
        "ws": np.float32(0.02),
        "wz": np.int8(0),
        "w": generator.integers(-90, 90, (8, 6)).astype(np.int8),
        "v": generator.integers(-90, 90, (8, 5)).astype(np.int8),
        "shape": np.array([2, 4, 2, 3]),
        "flat": np.array([6, 8]),
        "b": np.array([0]),
        "e": np.array([3]),
        "a": np.array([3]),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *SCALE], ["q"], name="quantize"),
        helper.make_node(
            "QLinearMatMul", ["q", *SCALE, "w", "ws", "wz", *SCALE], ["p"], name="first"
        ),
        helper.make_node("Reshape", ["p", "shape"], ["r"], name="apart"),
        helper.make_node("Transpose", ["r"], ["t"], name="swap", perm=[0, 2, 3, 1]),
        helper.make_node("Slice", ["t", "b", "e", "a"], ["c"], name="cut"),
        helper.make_node("Reshape", ["t", "flat"], ["f"], name="together"),
        helper.make_node(
            "QLinearMatMul", ["f", *SCALE, "v", "ws", "wz", *SCALE], ["o"], name="second"
        ),
        helper.make_node("DequantizeLinear", ["o", *SCALE], ["y"], name="dequantize"),
        helper.make_node("DequantizeLinear", ["c", *SCALE], ["part"], name="dequantize_part"),
    ]
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 8])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "part")],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_moves_between_products_stays_with_them(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(), path)
    report = partition(normalise(import_onnx(path).graph), NnapiBackend(), 4).report
    assert [o.name for o in report.operations if o.rejection is not None] == []
    assert report.subgraph_count == 1


def test_integers_are_those_of_onnx_runtime(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(), path)
    data = np.random.default_rng(5).standard_normal((8, 8)).astype(np.float32)
    want = onnxruntime.InferenceSession(path).run(None, {"x": data})
    got = on_host(fold(import_onnx(path).graph))(data)
    for mine, theirs in zip(got, want, strict=True):
        # A sum that ends on a half is rounded in another way: one step, of 0.05.
        np.testing.assert_allclose(mine, theirs, atol=0.0501)
        assert (mine == theirs).mean() > 0.95
