"""Operations composed from others: from which level, and the whole pipeline's numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from service.contracts.targets import MAX_FEATURE_LEVEL, MIN_FEATURE_LEVEL
from tests.workers.backends.nnapi.composed_cases import COMPOSED
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.graph.graph import Graph, dtype_of, static_shape
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

REPOSITORY = Path(__file__).parents[4]


def _graph(name: str, folder: Path) -> Graph:
    path = folder / f"{name}.onnx"
    onnx.save(COMPOSED[name][1](), path)
    return normalise(import_onnx(path).graph)


@pytest.mark.parametrize("name", COMPOSED)
def test_all_of_it_is_offloaded_from_its_level_on(name: str, tmp_path: Path) -> None:
    graph = _graph(name, tmp_path)
    for level in range(MIN_FEATURE_LEVEL, MAX_FEATURE_LEVEL + 1):
        report = partition(graph, NnapiBackend(), level).report
        is_whole = report.offloaded_count == report.operation_count
        assert is_whole == (level >= COMPOSED[name][0]), (level, report.operations)
        assert report.subgraph_count == 1 or not is_whole
        for operation in report.operations:
            if operation.rejection is not None and operation.rejection.needed_level is not None:
                assert operation.rejection.needed_level > level


def _inputs(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    return {
        value.name: generator.standard_normal(
            [d.dim_value for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
    }


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, player_library: Path, simulator_dir: Path
) -> Path:
    """Answers of the simulator to all cases at their least levels, by one child process."""
    folder = tmp_path_factory.mktemp("composed")
    (folder / "player.txt").write_text(str(player_library))
    for name, (level, build) in COMPOSED.items():
        backend = NnapiBackend()
        split = partition(_graph(name, folder), backend, level)
        encoding = backend.encode(split.regions, level)
        (folder / f"{name}.json").write_bytes(encoding.regions[0].module_bytes)
        (folder / f"{name}.weights").write_bytes(encoding.weights)
        region, inputs = split.regions[0], _inputs(build())
        arrays = {f"i{k}": _border(split.graph, v, inputs) for k, v in enumerate(region.inputs)}
        for k, var in enumerate(region.outputs):
            arrays[f"o{k}"] = np.zeros(static_shape(var) or (), dtype_of(var))
        np.savez(folder / f"{name}.npz", **arrays)
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("play.py")), str(folder)],
        env=os.environ | {"LD_LIBRARY_PATH": str(simulator_dir)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,  # the assertion shows the child's own words
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return folder


def _border(graph: Graph, var: object, inputs: dict[str, np.ndarray]) -> np.ndarray:
    assert var in graph.inputs
    return inputs[var.name]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMPOSED)
def test_simulator_agrees_with_onnx_runtime(name: str, played: Path) -> None:
    model = COMPOSED[name][1]()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, _inputs(model))
    error = played / f"{name}.error"
    assert not error.exists(), error.read_text()
    with np.load(played / f"{name}.out.npz") as arrays:
        (got,) = [arrays[k] for k in arrays.files]
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
