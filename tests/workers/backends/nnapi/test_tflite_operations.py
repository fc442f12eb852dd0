"""Operators of TFLite that are written out on import are one operation where NNAPI has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.contracts.jobs import ModelFormat
from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from tests.workers.tflite_models import Step, Value, tflite_model
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.tflite.importer import import_tflite
from workers.graph.graph import Graph
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition
from workers.pipeline.stages.runtimes import run_original

RNG = np.random.default_rng(23)
WINDOW = {"padding": 0, "strideH": 2, "strideW": 1, "filterHeight": 3, "filterWidth": 2}
INT8 = Value((2, 7), "int8", scale=0.05, zero_point=3)
UNIT = Value((2, 7), "int8", scale=1 / 128)
CASES: dict[str, tuple[Step, Value, Value, str, int]] = {
    "elu": (Step("ELU", ["x"], ["y"]), Value((2, 5)), Value((2, 5)), "ELU", 4),
    "l2 norm": (
        Step("L2_NORMALIZATION", ["x"], ["y"], "L2NormOptions"),
        Value((1, 2, 3, 5)), Value((1, 2, 3, 5)), "L2_NORMALIZATION", 3,
    ),
    "l2 norm of rows": (
        Step("L2_NORMALIZATION", ["x"], ["y"], "L2NormOptions"),
        Value((2, 7)), Value((2, 7)), "L2_NORMALIZATION", 3,
    ),
    "l2 norm int8": (
        Step("L2_NORMALIZATION", ["x"], ["y"], "L2NormOptions", version=2),
        INT8, UNIT, "L2_NORMALIZATION", 3,  # as uint8
    ),
    "l2 pool": (
        Step("L2_POOL_2D", ["x"], ["y"], "Pool2DOptions", WINDOW),
        Value((1, 7, 6, 4)), Value((1, 4, 6, 4)), "L2_POOL_2D", 1,
    ),
    "l2 pool and relu": (
        Step("L2_POOL_2D", ["x"], ["y"], "Pool2DOptions", {**WINDOW, "fusedActivationFunction": 3}),
        Value((1, 7, 6, 4)), Value((1, 4, 6, 4)), "L2_POOL_2D", 1,
    ),
}  # fmt: skip


def _graph(case: tuple[Any, ...], folder: Path) -> tuple[Path, Graph]:
    step, data, result, *_ = case
    path = folder / "model.tflite"
    path.write_bytes(tflite_model({"x": data, "y": result}, [step], ["x"], ["y"]))
    return path, normalise(import_tflite(path).graph)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_is_one_operation_from_its_level_on(case: tuple[Any, ...], tmp_path: Path) -> None:
    _, graph = _graph(case, tmp_path)
    *_, name, level = case
    (row,) = partition(graph, NnapiBackend(), level).report.operations
    assert row.nnapi_operations == (name,)
    if level > 1:
        (row,) = partition(graph, NnapiBackend(), level - 1).report.operations
        assert row.nnapi_operations != (name,)


def test_gives_the_numbers_of_litert(
    tmp_path: Path, player_library: Path, simulator_dir: Path
) -> None:
    played = tmp_path / "played"
    played.mkdir()
    wanted, steps = {}, {}
    for index, case in enumerate(CASES.values()):
        path, graph = _graph(case, tmp_path)
        data, result = case[1:3]
        x = RNG.uniform(-3, 3, (1, *data.shape)).astype(np.float32)
        if data.dtype == "int8":
            x = RNG.integers(-128, 128, (1, *data.shape), np.int8)
        signature = import_tflite(path).signature
        wanted[index] = run_original(path, ModelFormat.TFLITE, signature, {"x": x})["y"][0]
        steps[index] = 1 if result.dtype == "int8" else 1e-5
        backend = NnapiBackend()
        split = partition(graph, backend, 4)
        encoding = backend.encode(split.regions, 4)
        write_subgraph(played, str(index), encoding, split.regions[0], {"x": x[0]})
    play(played, player_library, simulator_dir)
    for index, want in wanted.items():
        (got,) = answers(played, str(index))
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got.astype(float), want.astype(float), atol=steps[index])
