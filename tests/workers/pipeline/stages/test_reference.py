"""The reference stage: samples in the model's own types, answers by its own runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from tests.workers.tflite_models import Step, Value, tflite_model
from workers.pipeline.blobs import BlobFolder
from workers.pipeline.stages.reference import evaluate, samples_for

SIGNATURE = ModelSignature(
    inputs=(TensorSpec(name="x", dtype=DType.INT8, shape=(1, 64)),),
    outputs=(TensorSpec(name="y", dtype=DType.FLOAT32, shape=(1, 64)),),
)


@pytest.fixture
def dequantizer(tmp_path: Path) -> Path:
    """y = 0.5 * (x - 3)."""
    values = {"x": Value((1, 64), "int8", scale=0.5, zero_point=3), "y": Value((1, 64))}
    path = tmp_path / "model.tflite"
    path.write_bytes(tflite_model(values, [Step("DEQUANTIZE", ["x"], ["y"])], ["x"], ["y"]))
    return path


def test_drawn_bytes_cover_their_range() -> None:
    samples = samples_for(SIGNATURE, None)
    drawn = samples.inputs["x"]
    assert (drawn.dtype, drawn.shape[1:]) == (np.int8, (1, 64))
    assert drawn.min() < -100
    assert drawn.max() > 100


def test_answers_come_from_the_models_runtime(dequantizer: Path, tmp_path: Path) -> None:
    data = np.arange(-64, 64, dtype=np.int8).reshape(2, 1, 64)
    np.savez(tmp_path / "data.npz", x=data, labels=np.array([63, 0]))
    samples = samples_for(SIGNATURE, tmp_path / "data.npz")
    blobs = BlobFolder(tmp_path / "blobs")
    result = evaluate(dequantizer, ModelFormat.TFLITE, SIGNATURE, samples, blobs)
    expected = load_file(tmp_path / "blobs" / result.expected_sha256)["y"]
    np.testing.assert_array_equal(expected, 0.5 * (data.astype(np.float32) - 3))
    assert (result.sample_count, result.labels, result.original_top1) == (2, (63, 0), 0.5)
    assert not result.synthetic


@pytest.mark.parametrize(
    ("model_format", "runtime"),
    [(ModelFormat.ONNX, "ONNX Runtime"), (ModelFormat.TFLITE, "LiteRT")],
)
def test_a_model_its_runtime_refuses_is_the_models_fault(
    model_format: ModelFormat, runtime: str, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"no model at all")
    samples = samples_for(SIGNATURE, None)
    with pytest.raises(NnfarmError, match=f"{runtime} cannot run") as caught:
        evaluate(path, model_format, SIGNATURE, samples, BlobFolder(tmp_path / "blobs"))
    assert caught.value.code == "compile.reference_failed"
