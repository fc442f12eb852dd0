"""Every format a model can come in, through the running stack, against its own runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from torch import nn

from service.client import Client, CompilationRequest
from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi
from tests.stack.digits import finish
from tests.workers.onnx_models import make_model, weights
from tests.workers.tflite_models import Step, Value, constant, tflite_model

RNG = np.random.default_rng(11)


def write_tflite_int8(folder: Path) -> Path:
    """Quantized convolution per channel, global mean, classes."""
    scales = [0.02, 0.01, 0.03, 0.02]
    values = {
        "x": Value((1, 8, 8, 3), "int8", None, 0.05, 3),
        "w": Value((4, 3, 3, 3), "int8", RNG.integers(-127, 127, (4, 3, 3, 3), np.int8), scales),
        "b": constant(RNG.integers(-200, 200, 4), scale=[0.05 * s for s in scales]),
        "c": Value((1, 8, 8, 4), "int8", None, 0.1, -20),
        "axes": constant([1, 2]),
        "m": Value((1, 4), "int8", None, 0.1, -20),
        "y": Value((1, 4), "int8", None, 1 / 256, -128),
    }
    steps = [
        Step("CONV_2D", ["x", "w", "b"], ["c"], "Conv2DOptions",
             {"strideW": 1, "strideH": 1, "fusedActivationFunction": 1}, version=3),
        Step("MEAN", ["c", "axes"], ["m"], "ReducerOptions", version=2),
        Step("SOFTMAX", ["m"], ["y"], "SoftmaxOptions", {"beta": 1.0}, version=2),
    ]  # fmt: skip
    path = folder / "net.tflite"
    path.write_bytes(tflite_model(values, steps, ["x"], ["y"]))
    return path


def write_pt2(folder: Path) -> Path:
    torch.manual_seed(3)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(128, 5)
    ).eval()
    path = folder / "net.pt2"
    torch.export.save(torch.export.export(network, (torch.zeros(1, 3, 8, 8),)), path)
    return path


def write_external_onnx(folder: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["y"], name="flatten"),
    ]
    constants = {"w": weights(16, 3, 3, 3), "b": weights(16)}
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], constants)
    path = folder / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
    assert (folder / "net.onnx.data").stat().st_size > constants["w"].nbytes
    return path


@pytest.mark.parametrize(
    ("write", "model_format", "max_error"),
    [
        (write_tflite_int8, ModelFormat.TFLITE, 2.0),
        (write_pt2, ModelFormat.PYTORCH, 1e-4),
        (write_external_onnx, ModelFormat.ONNX, 1e-4),
    ],
    ids=["tflite-int8", "pt2", "onnx-external-data"],
)
def test_from_the_file_to_measured_packages(
    client: Client,
    tmp_path: Path,
    write: Callable[[Path], Path],
    model_format: ModelFormat,
    max_error: float,
) -> None:
    model = client.upload_model(write(tmp_path))
    assert model.format == model_format
    (border,) = model.signature.inputs
    shape = (20, *border.shape)
    samples = RNG.integers(-128, 128, shape) if border.dtype == "int8" else RNG.normal(size=shape)
    np.savez(tmp_path / "samples.npz", **{border.name: samples.astype(border.dtype.value)})
    dataset = client.upload_dataset(tmp_path / "samples.npz", model.id)
    request = CompilationRequest(
        model_id=model.id, dataset_id=dataset.id, levels=(1, 4), abis=(Abi.X86_64,), run_on="any"
    )
    for result in finish(client, client.compile(request)):
        manifest = result.artifact.manifest
        assert manifest.offloaded_count >= manifest.operation_count - 1
        assert result.run is not None
        measurement = result.run.measurement
        assert measurement is not None
        assert measurement.fallbacks == ()
        assert measurement.accuracy.sample_count == 20
        assert measurement.accuracy.max_abs_error <= max_error
        assert measurement.accuracy.agreement >= 0.95
