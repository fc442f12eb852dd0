"""Operations composed from others: from which level, and the whole pipeline's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from service.contracts.targets import MAX_FEATURE_LEVEL, MIN_FEATURE_LEVEL
from tests.workers.backends.nnapi.composed_cases import COMPOSED as LATER
from tests.workers.backends.nnapi.early_cases import EARLY
from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from tests.workers.backends.nnapi.rank_cases import RANKS
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.graph.graph import Graph
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

COMPOSED = {**LATER, **EARLY, **RANKS}


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


PLAYED = [
    (name, level)
    for name in COMPOSED
    for level in sorted({COMPOSED[name][0], 2, 5, 8})
    if level >= COMPOSED[name][0]
]
"""At the least level, at Android 9's, at Android 12's, and at the last."""


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, player_library: Path, simulator_dir: Path
) -> Path:
    """Answers of the simulator to all cases, by one child process."""
    folder = tmp_path_factory.mktemp("composed")
    graphs = {name: _graph(name, folder) for name in COMPOSED}
    for name, level in PLAYED:
        backend = NnapiBackend()
        split = partition(graphs[name], backend, level)
        encoding = backend.encode(split.regions, level)
        inputs = _inputs(COMPOSED[name][1]())
        write_subgraph(folder, f"{name}-{level}", encoding, split.regions[0], inputs)
    play(folder, player_library, simulator_dir)
    return folder


@pytest.mark.parametrize(("name", "level"), PLAYED)
def test_simulator_agrees_with_onnx_runtime(name: str, level: int, played: Path) -> None:
    model = COMPOSED[name][1]()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, _inputs(model))
    got = answers(played, f"{name}-{level}")
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
