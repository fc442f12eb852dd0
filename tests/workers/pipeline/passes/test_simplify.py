"""Plainer forms of operations: the numbers stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, single, weights
from workers.frontends.onnx import import_onnx
from workers.pipeline.stages.ingest import fold


def _answers(model: onnx.ModelProto, folder: Path, *data: np.ndarray) -> tuple[list, list]:
    path = folder / "model.onnx"
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path)
    names = [value.name for value in session.get_inputs()]
    want = session.run(None, dict(zip(names, data, strict=True)))
    return list(on_host(fold(import_onnx(path).graph))(*data)), want


def test_rms_norm_over_all_axes(tmp_path: Path) -> None:
    constants = {"w": weights(2, 3, 8)}
    model = single("RMSNormalization", {"x": [2, 3, 8]}, constants, axis=0, opset=23)
    (got,), (want,) = _answers(model, tmp_path, weights(2, 3, 8, seed=1))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_cast_to_bool_is_a_comparison(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["m"], ["c"], name="cast", to=TensorProto.BOOL),
        helper.make_node("Where", ["c", "low", "high"], ["y"], name="where"),
    ]
    constants = {"low": np.float32(-1), "high": weights(3, 4)}
    model = make_model(nodes, {"m": [4]}, ["y"], constants, input_type=TensorProto.INT64)
    (got,), (want,) = _answers(model, tmp_path, np.array([0, 2, -1, 0]))
    np.testing.assert_array_equal(got, want)
