"""Every row of the case table: the decision, the lowering, the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from service.contracts.targets import MAX_FEATURE_LEVEL, MIN_FEATURE_LEVEL
from tests.workers.backends.nnapi.cases import CASES, NEVER, Case
from tests.workers.backends.nnapi.playing import answers, play, write_subgraph
from workers.backends.nnapi.backend import NnapiBackend
from workers.frontends.onnx import import_onnx
from workers.graph.graph import Graph
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import partition

GOLDEN = Path(__file__).parent / "golden" / "operations.json"
OFFLOADED = tuple(case for case in CASES if case.level != NEVER)


def _graph(case: Case, folder: Path) -> Graph:
    path = folder / f"{case.name}.onnx"
    onnx.save(case.model, path)
    return normalise(import_onnx(path).graph)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_is_taken_from_its_level_on_and_refused_with_a_reason_below(
    case: Case, tmp_path: Path
) -> None:
    graph = _graph(case, tmp_path)
    for level in range(MIN_FEATURE_LEVEL, MAX_FEATURE_LEVEL + 1):
        claims = NnapiBackend().claim(graph, level, {})
        reasons = {r.code for r in claims.rejections.values()}
        assert (not reasons) == (level >= case.level), (level, reasons)
        if level < case.level:
            assert case.reason in reasons
        needed = {r.needed_level for r in claims.rejections.values()} - {None}
        assert all(n > level for n in needed)


@pytest.mark.parametrize("case", OFFLOADED, ids=lambda case: case.name)
def test_becomes_one_subgraph_of_the_operations_named(case: Case, tmp_path: Path) -> None:
    split = partition(_graph(case, tmp_path), NnapiBackend(), MAX_FEATURE_LEVEL)
    assert len(split.regions) == 1
    assert tuple(n for u in split.regions[0].units for n in u.operations) == case.operations
    assert split.report.offloaded_count == split.report.operation_count


def test_lowering_equals_the_golden_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Refresh with `pytest --refresh-golden` and read the difference before committing it."""
    lowered = {}
    for case in OFFLOADED:
        backend = NnapiBackend()
        split = partition(_graph(case, tmp_path), backend, MAX_FEATURE_LEVEL)
        encoding = backend.encode(split.regions, MAX_FEATURE_LEVEL)
        lowered[case.name] = json.loads(encoding.regions[0].module_bytes)
    if request.config.getoption("--refresh-golden"):
        GOLDEN.write_text(_one_line_each(lowered))
    assert lowered == json.loads(GOLDEN.read_text())


def _one_line_each(models: dict[str, object]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(model)}" for name, model in models.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


@pytest.fixture(scope="module")
def played(
    tmp_path_factory: pytest.TempPathFactory, player_library: Path, simulator_dir: Path
) -> Path:
    """Answers of the simulator to all cases, by one child process."""
    folder = tmp_path_factory.mktemp("played")
    for case in OFFLOADED:
        backend = NnapiBackend()
        split = partition(_graph(case, folder), backend, case.level)
        encoding = backend.encode(split.regions, case.level)
        write_subgraph(folder, case.name, encoding, split.regions[0], _inputs(case))
    play(folder, player_library, simulator_dir)
    return folder


def _inputs(case: Case) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(7)
    arrays = {}
    for value in case.model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        drawn = generator.standard_normal(shape).astype(np.float32) * 3
        arrays[value.name] = np.abs(drawn) + 0.1 if case.positive else drawn
    return arrays


@pytest.mark.parametrize("case", OFFLOADED, ids=lambda case: case.name)
def test_simulator_agrees_with_onnx_runtime(case: Case, played: Path) -> None:
    session = onnxruntime.InferenceSession(case.model.SerializeToString())
    expected = session.run(None, _inputs(case))
    got = answers(played, case.name)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
