"""Gathers and scatters at known positions: rows taken, and ONNX Runtime's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import single, weights
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import fold

CUBE = {"x": [3, 4, 5]}
ROWS = {"relax.take", "relax.reshape", "relax.concat"}
POINTS = np.random.default_rng(0).integers(0, [3, 4, 5], (2, 6, 3))
PIXELS = np.stack(np.meshgrid(np.arange(3), np.arange(4), indexing="ij"), -1)
PLACES = np.random.default_rng(1).integers(-4, 4, (3, 2, 5))

MODELS = {
    "gather rows": single("GatherND", CUBE, {"i": np.array([[2], [0], [-1], [1]])}),
    "gather points": single("GatherND", CUBE, {"i": POINTS}),
    "gather all": single("GatherND", CUBE, {"i": PIXELS}),
    "gather elements": single("GatherElements", CUBE, {"i": PLACES}, axis=1),
    "scatter rows": single("ScatterND", CUBE, {"i": np.array([[2], [0]]), "u": weights(2, 4, 5)}),
    "scatter a row twice": single(
        "ScatterND", CUBE, {"i": np.array([[0, 1], [2, 3], [0, 1]]), "u": weights(3, 5)}
    ),
    "scatter elements": single(
        "ScatterElements",
        CUBE,
        {"i": np.array([[[1, 2, 0, 3, 0]], [[2, 1, 3, 0, 3]]]), "u": weights(2, 1, 5)},
        axis=1,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_known_positions_are_rows_of_a_matrix(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODELS[name], path)
    data = weights(3, 4, 5, seed=3)
    (want,) = onnxruntime.InferenceSession(path).run(None, {"x": data})
    graph = fold(import_onnx(path).graph)
    assert {b.op_name for b in graph.bindings if b.call is not None} <= ROWS
    (got,) = on_host(graph)(data)
    np.testing.assert_array_equal(got, want)


def test_positions_of_the_whole_tensor_move_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODELS["gather all"], path)
    graph = fold(import_onnx(path).graph)
    assert "relax.take" not in {b.op_name for b in graph.bindings}
