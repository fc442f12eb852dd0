"""Dimensions that a TFLite file leaves open."""

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

RNG = np.random.default_rng(3)


def _network(rows: int = -1) -> bytes:
    """Images of an open batch, pooled, put into rows and multiplied."""
    values = {
        "x": Value((1, 4, 6, 2), open_shape=(-1, 4, 6, 2)),
        "fixed": Value((1, 6)),
        "pooled": Value((1, 2, 3, 2), open_shape=(-1, 2, 3, 2)),
        "shape": constant([rows, 12]),
        "flat": Value((1, 12), open_shape=(-1, 12)),
        "w": constant(RNG.standard_normal((6, 12)), "float32"),
        "product": Value((1, 6), open_shape=(-1, 6)),
        "y": Value((1, 6), open_shape=(-1, 6)),
    }
    window = {"filterWidth": 2, "filterHeight": 2, "strideW": 2, "strideH": 2}
    steps = [
        Step("AVERAGE_POOL_2D", ["x"], ["pooled"], "Pool2DOptions", window),
        Step("RESHAPE", ["pooled", "shape"], ["flat"], "ReshapeOptions"),
        Step("FULLY_CONNECTED", ["flat", "w"], ["product"], "FullyConnectedOptions"),
        Step("ADD", ["product", "fixed"], ["y"], "AddOptions"),
    ]
    return tflite_model(values, steps, ["x", "fixed"], ["y"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(_network())
    return path


@pytest.mark.parametrize("batch", [1, 3])
def test_an_open_batch_is_the_one_given(batch: int, file: Path) -> None:
    shape = (batch, 4, 6, 2)
    imported = import_tflite(file, {"x": shape} if batch > 1 else None)
    assert [spec.shape for spec in imported.signature.inputs] == [shape, (1, 6)]
    data = {"x": RNG.standard_normal(shape, np.float32), "fixed": np.ones((1, 6), np.float32)}
    stacked = {name: array[None] for name, array in data.items()}
    want = run_original(file, ModelFormat.TFLITE, imported.signature, stacked)
    (got,) = on_host(imported.graph)(*data.values())
    assert got.shape == (batch, 6)
    np.testing.assert_allclose(got, want["y"][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"x": (3, 4, 5, 2)}, r"'x' has shape \[-1, 4, 6, 2\]"),
        ({"x": (4, 6, 2)}, r"'x' has shape \[-1, 4, 6, 2\]"),
        ({"fixed": (3, 6)}, r"'fixed' has shape \[1, 6\]"),
        ({"image": (3, 4, 6, 2)}, "no input 'image'; it has fixed, x"),
    ],
    ids=["fixed size", "rank", "no open dimension", "name"],
)
def test_other_shapes_are_refused(
    shapes: dict[str, tuple[int, ...]], words: str, file: Path
) -> None:
    with pytest.raises(NnfarmError, match=words) as caught:
        import_tflite(file, shapes)
    assert caught.value.code == "compile.bad_option"


def test_a_batch_that_an_operator_does_not_take_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(_network(rows=1))
    with pytest.raises(NnfarmError, match="LiteRT cannot give input 'x' the shape") as caught:
        import_tflite(path, {"x": (3, 4, 6, 2)})
    assert caught.value.code == "compile.bad_option"
