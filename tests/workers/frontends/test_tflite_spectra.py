"""Fourier transforms of TFLite models: spectra are LiteRT's; other complex numbers are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from tests.workers.tflite_models import Step, Value, constant, tflite_model
from workers.frontends.tflite.importer import import_tflite
from workers.pipeline.stages.runtimes import run_original

RNG = np.random.default_rng(29)
FRAMES, LENGTH = 3, 256
BINS = LENGTH // 2 + 1


def spectrum(last: str, rows: int = 1, output: str = "float32") -> bytes:
    """What tf.signal.stft becomes: frames, their transform, an axis dropped, a number a bin."""
    values = {
        "frames": Value((FRAMES, rows, LENGTH)), "size": constant([rows, LENGTH]),
        "transform": Value((FRAMES, rows, BINS), "complex64"),
        "shape": constant([FRAMES * rows, BINS]), "flat": Value((FRAMES * rows, BINS), "complex64"),
        "y": Value((FRAMES * rows, BINS), output),
    }  # fmt: skip
    steps = [
        Step("RFFT2D", ["frames", "size"], ["transform"], "Rfft2dOptions"),
        Step("RESHAPE", ["transform", "shape"], ["flat"], "ReshapeOptions"),
        Step(last, ["flat"], ["y"]),
    ]
    return tflite_model(values, steps, ["frames"], ["y"])


@pytest.mark.parametrize("last", ["COMPLEX_ABS", "REAL", "IMAG"])
def test_is_the_spectrum_of_litert(last: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(spectrum(last))
    imported = import_tflite(path)
    frames = RNG.uniform(-1, 1, (1, FRAMES, 1, LENGTH)).astype(np.float32)
    want = run_original(path, ModelFormat.TFLITE, imported.signature, {"frames": frames})["y"][0]
    np.testing.assert_allclose(on_host(imported.graph)(frames[0])[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (spectrum("REAL", rows=2), "transforms along two axes"),
        (spectrum("NEG", output="complex64"), "output of complex numbers"),
        (spectrum("NEG"), "takes complex numbers"),
    ],
    ids=["two axes", "output", "arithmetic"],
)
def test_other_complex_numbers_are_refused(model: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    with pytest.raises(NnfarmError, match=sentence):
        import_tflite(path)
