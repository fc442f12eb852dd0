"""Movements that undo each other are gone, whatever stands around them; the numbers stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, weights
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def expected(path: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, {"x": x})[0]
    return result


def test_layers_of_an_exporter_stand_behind_each_other(tmp_path: Path) -> None:
    """PyTorch's exporter turns the outputs of both directions back to the layer's own order."""
    node = helper.make_node
    weights_of_layers = {
        f"{name}{layer}": weights(2, 12, *size, seed=layer)
        for layer, width in ((0, 4), (1, 6))
        for name, size in (("w", (width,)), ("r", (3,)))
    }
    nodes = []
    for layer, source in ((0, "x"), (1, "z0")):
        operands = [source, f"w{layer}", f"r{layer}"]
        nodes += [
            node("LSTM", operands, [f"y{layer}"], f"lstm{layer}", direction="bidirectional",
                 hidden_size=3),
            node("Transpose", [f"y{layer}"], [f"t{layer}"], f"turn{layer}", perm=[0, 2, 1, 3]),
            node("Reshape", [f"t{layer}", "shape"], [f"z{layer}"], f"join{layer}"),
        ]  # fmt: skip
    constants = {**weights_of_layers, "shape": np.array([5, 2, 6], np.int64)}
    path = saved(make_model(nodes, {"x": [5, 2, 4]}, ["z1"], constants), tmp_path)
    graph = import_onnx(path).graph
    report = partition(normalise(graph), NnapiBackend(), 3).report
    names = {name for row in report.operations for name in row.nnapi_operations}
    assert names == {"BIDIRECTIONAL_SEQUENCE_LSTM"}
    assert report.offloaded_count == report.operation_count
    x = weights(5, 2, 4, seed=9)
    np.testing.assert_allclose(on_host(graph)(x)[0], expected(path, x), rtol=1e-5, atol=1e-6)


def test_what_somebody_else_reads_stays(tmp_path: Path) -> None:
    node = helper.make_node
    nodes = [
        node("Transpose", ["x"], ["t"], "turn", perm=[2, 0, 1]),
        node("Relu", ["t"], ["a"], "relu"),
        node("Transpose", ["t"], ["b"], "back", perm=[1, 2, 0]),
        node("Transpose", ["t"], ["c"], "on", perm=[2, 0, 1]),
        node("Reshape", ["b", "flat"], ["f"], "flatten"),
        node("Reshape", ["f", "whole"], ["g"], "unflatten"),
        node("Transpose", ["g"], ["h"], "turned again", perm=[2, 0, 1]),
        node("Mul", ["a", "h"], ["m"], "product"),
        node("ReduceSum", ["c"], ["s"], "sum"),
        node("Add", ["m", "s"], ["y"], "all"),
    ]
    constants = {"flat": np.array([-1], np.int64), "whole": np.array([2, 3, 4], np.int64)}
    path = saved(make_model(nodes, {"x": [2, 3, 4]}, ["y"], constants), tmp_path)
    x = weights(2, 3, 4)
    (ours,) = on_host(import_onnx(path).graph)(x)
    np.testing.assert_allclose(ours, expected(path, x), rtol=1e-5, atol=1e-5)
