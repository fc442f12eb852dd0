"""Sparse weights of TFLite files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from tests.workers.frontends.hosts import on_host
from tests.workers.tflite_models import Step, Value, tflite_model
from workers.frontends.tflite.importer import import_tflite
from workers.pipeline.stages.runtimes import run_original

RNG = np.random.default_rng(3)
STORED = RNG.standard_normal(8).astype(np.float32)


def _level(
    size: int = 0, segments: list[int] | None = None, indices: list[int] | None = None
) -> Any:
    level = schema.DimensionMetadataT()
    level.format, level.denseSize = schema.DimensionType.DENSE, size
    if segments is not None:
        level.format = schema.DimensionType.SPARSE_CSR
        level.arraySegmentsType = level.arrayIndicesType = schema.SparseIndexVector.Int32Vector
        level.arraySegments, level.arrayIndices = (schema.Int32VectorT() for _ in range(2))
        level.arraySegments.values, level.arrayIndices.values = segments, indices
    return level


def _sparsity(order: list[int], blocks: list[int], levels: list[Any]) -> Any:
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.blockMap, sparsity.dimMetadata = order, blocks, levels
    return sparsity


ROWS = _sparsity([0, 1], [], [_level(4), _level(segments=[0, 2, 3, 3, 8],
                                                indices=[1, 5, 0, 0, 1, 2, 3, 5])])  # fmt: skip
"""Four rows with two, one, none and five elements."""
BLOCKS = _sparsity([0, 1, 2, 3], [0, 1], [
    _level(2), _level(segments=[0, 1, 2], indices=[2, 0]), _level(2), _level(2),
])  # fmt: skip
"""Two blocks of two by two elements."""


def _model(weights: Value) -> bytes:
    values = {
        "x": Value((2, 6)), "sparse": weights, "w": Value((4, 6)), "y": Value((2, 4)),
    }  # fmt: skip
    steps = [
        Step("DENSIFY", ["sparse"], ["w"]),
        Step("FULLY_CONNECTED", ["x", "w"], ["y"], "FullyConnectedOptions"),
    ]
    return tflite_model(values, steps, ["x"], ["y"])


@pytest.mark.parametrize("sparsity", [ROWS, BLOCKS], ids=["rows", "blocks"])
def test_sparse_weights_are_those_of_litert(sparsity: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(_model(Value((4, 6), data=STORED, sparsity=sparsity)))
    imported = import_tflite(path)
    x = RNG.standard_normal((1, 2, 6)).astype(np.float32)
    want = run_original(path, ModelFormat.TFLITE, imported.signature, {"x": x})["y"][0]
    np.testing.assert_allclose(on_host(imported.graph)(x[0])[0], want, rtol=1e-5, atol=1e-6)


def test_lists_that_do_not_fit_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(_model(Value((4, 6), data=STORED[:5], sparsity=ROWS)))
    with pytest.raises(NnfarmError, match="sparse tensor 'sparse' is damaged") as caught:
        import_tflite(path)
    assert caught.value.code == "model.unreadable"
