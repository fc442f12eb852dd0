"""The whole pipeline as the sandboxed child runs it, in a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from safetensors.numpy import load_file

from service.contracts.artifacts import ExplanationReport, Manifest, OperationPlacement, PartRole
from service.contracts.errors import Problem
from service.contracts.jobs import CompileOptions, CompileOutcome, JobSpec, StageEvent
from service.contracts.nnapi_settings import NnapiSettings
from tests.workers.onnx_models import make_model, single, weights
from workers.pipeline import child


@pytest.fixture
def compile_model(tmp_path: Path, player_library: Path) -> Any:
    """Runs the child on a model; gives its folder and exit code."""

    def run(
        model: onnx.ModelProto,
        targets: list[tuple[int, str]],
        options: CompileOptions | None = None,
        dataset: dict[str, np.ndarray] | None = None,
        name: str = "job",
    ) -> tuple[Path, int]:
        folder = tmp_path / name
        folder.mkdir()
        path = folder / "model.onnx"
        onnx.save(model, path)
        if dataset is not None:
            np.savez(folder / "dataset.npz", **dataset)
        spec = JobSpec(
            compilation_id="cmp_test",
            attempt=2,
            job_token="",
            model_name="case.onnx",
            model_format="onnx",
            model_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            model_size_bytes=path.stat().st_size,
            dataset_sha256=None,
            targets=[{"feature_level": level, "abi": abi} for level, abi in targets],
            options=options or CompileOptions(),
        )
        job = {
            "spec": spec.model_dump(mode="json"),
            "model_path": str(path),
            "dataset_path": str(folder / "dataset.npz") if dataset is not None else None,
            "stub_dir": str(player_library.parents[2] / "worker-tests" / "toolchain"),
            "player_library": str(player_library),
        }
        (folder / "job.json").write_text(json.dumps(job))
        return folder, child.main(folder)

    return run


def _network() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Atan", ["r"], ["e"], name="atan"),
        helper.make_node("GlobalAveragePool", ["e"], ["g"], name="pool"),
        helper.make_node("Flatten", ["g"], ["y"], name="flatten"),
    ]
    constants = {"w": weights(16, 3, 3, 3), "b": weights(16)}
    return make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], constants)


def _outcome(folder: Path) -> CompileOutcome:
    return CompileOutcome.model_validate_json((folder / "outcome.json").read_text())


def _report(folder: Path, outcome: CompileOutcome, index: int) -> ExplanationReport:
    parts = {p.path: p for p in outcome.artifacts[index].manifest.parts}
    blob = folder / "blobs" / parts["report.json"].sha256
    return ExplanationReport.model_validate_json(blob.read_text())


def test_builds_every_target_and_explains_every_operation(compile_model: Any) -> None:
    folder, code = compile_model(_network(), [(1, "x86_64"), (4, "x86_64"), (4, "arm64-v8a")])
    assert code == 0
    outcome = _outcome(folder)
    assert outcome.attempt == 2
    assert [(a.target.feature_level, a.target.abi) for a in outcome.artifacts] == [
        (1, "x86_64"),
        (4, "x86_64"),
        (4, "arm64-v8a"),
    ]
    operations = {o.name: o for o in _report(folder, outcome, 0).operations}
    assert operations["atan"].placement is OperationPlacement.CPU
    assert operations["atan"].rejection is not None
    assert operations["atan"].rejection.code == "nnapi.no_operation"
    assert operations["conv"].nnapi_operations == ("CONV_2D",)
    assert operations["relu"].placement is OperationPlacement.NNAPI
    level4 = outcome.artifacts[1].manifest
    assert (level4.offloaded_count, level4.operation_count, level4.subgraph_count) == (4, 5, 2)


def test_levels_share_the_twin_and_equal_parts(compile_model: Any) -> None:
    folder, code = compile_model(_network(), [(3, "x86_64"), (4, "x86_64"), (8, "x86_64")])
    assert code == 0
    artifacts = _outcome(folder).artifacts
    by_path = [{p.path: p.sha256 for p in a.manifest.parts} for a in artifacts]
    assert len({parts["model_cpu.so"] for parts in by_path}) == 1
    assert len({parts["weights.bin"] for parts in by_path}) == 1
    assert len({parts["model.so"] for parts in by_path}) == 1  # the same operations at all three


def test_code_for_newer_processors_stands_beside_the_baseline(compile_model: Any) -> None:
    options = CompileOptions(cpu_variants=("avx512", "avx2", "dotprod"))
    targets = [(1, "x86_64"), (1, "arm64-v8a")]
    folder, code = compile_model(_network(), targets, options=options)
    assert code == 0
    manifests = [a.manifest for a in _outcome(folder).artifacts]
    assert [list(_variants_of(m, PartRole.LIBRARY)) for m in manifests] == [
        ["model.so", "model.avx2.so", "model.avx512.so"],  # Atan stays on the CPU
        ["model.so"],
    ]
    twins = _variants_of(manifests[0], PartRole.CPU_TWIN)
    assert list(twins) == ["model_cpu.so", "model_cpu.avx2.so", "model_cpu.avx512.so"]
    assert twins["model_cpu.so"] == ()
    assert twins["model_cpu.avx2.so"] == ("avx2", "fma", "f16c")
    # Of float32 the code is the same.
    assert list(_variants_of(manifests[1], PartRole.CPU_TWIN)) == ["model_cpu.so"]
    assert [cpu.path for cpu in manifests[0].cpu] == [
        *_variants_of(manifests[0], PartRole.LIBRARY),
        *twins,
    ]
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert events[-1]["done"] == events[-1]["total"]


def _variants_of(manifest: Manifest, role: PartRole) -> dict[str, tuple[str, ...]]:
    return {p.path: p.cpu_features for p in manifest.parts if p.role is role}


def test_a_variant_of_another_abi_is_refused(compile_model: Any) -> None:
    options = CompileOptions(cpu_variants=("dotprod",))
    folder, code = compile_model(_network(), [(1, "x86_64")], options=options)
    assert code != 0
    problem = Problem.model_validate_json((folder / "problem.json").read_text())
    assert problem.code == "compile.bad_option"
    assert "dotprod is one of arm64-v8a" in problem.detail


def test_same_input_gives_the_same_bytes(compile_model: Any) -> None:
    results = []
    for name in ("one", "two"):
        folder, code = compile_model(_network(), [(4, "x86_64"), (4, "arm64-v8a")], name=name)
        assert code == 0
        results.append([a.manifest for a in _outcome(folder).artifacts])
    assert results[0] == results[1]


def test_expected_outputs_are_those_of_onnx_runtime(compile_model: Any) -> None:
    model = _network()
    images = weights(5, 1, 3, 8, 8, seed=4)
    labels = np.arange(5)
    folder, code = compile_model(model, [(4, "x86_64")], dataset={"x": images, "labels": labels})
    assert code == 0
    evaluation = _outcome(folder).evaluation
    assert evaluation.sample_count == 5
    assert not evaluation.synthetic
    expected = load_file(folder / "blobs" / evaluation.expected_sha256)["y"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    answers = np.stack([session.run(None, {"x": image})[0] for image in images])
    np.testing.assert_array_equal(expected, answers)
    top1 = float(np.mean(answers.reshape(5, -1).argmax(1) == labels))
    assert evaluation.original_top1 == pytest.approx(top1)


def test_samples_without_batch_dimension_are_taken(compile_model: Any) -> None:
    images = weights(2, 3, 8, 8, seed=4)
    folder, code = compile_model(_network(), [(4, "x86_64")], dataset={"x": images})
    assert code == 0
    inputs = load_file(folder / "blobs" / _outcome(folder).evaluation.inputs_sha256)
    assert inputs["x"].shape == (2, 1, 3, 8, 8)


def test_excluded_operations_stay_on_the_cpu_and_say_so(compile_model: Any) -> None:
    folder, code = compile_model(_network(), [(4, "x86_64")], CompileOptions(exclude_ops=("Conv",)))
    assert code == 0
    report = _report(folder, _outcome(folder), 0)
    conv = next(o for o in report.operations if o.name == "conv")
    assert conv.rejection is not None
    assert conv.rejection.code == "nnapi.excluded"


def test_model_without_any_offload_has_one_library(compile_model: Any) -> None:
    folder, code = compile_model(single("Atan", {"x": [2, 16]}), [(8, "x86_64")])
    assert code == 0
    manifest = _outcome(folder).artifacts[0].manifest
    parts = {p.path: p.sha256 for p in manifest.parts}
    assert parts["model.so"] == parts["model_cpu.so"]
    assert "weights.bin" not in parts
    assert (manifest.offloaded_count, manifest.needed_level) == (0, 0)


def test_the_manifest_tells_what_the_cpu_takes(compile_model: Any) -> None:
    """Four images one after the other: two are alive at a time, and Sinh has no vector form."""
    image = [1, 64, 4, 4]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "w"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"]),
        helper.make_node("Sinh", ["c"], ["y"]),
    ]
    model = make_model(nodes, {"x": image}, ["y"], {"w": weights(64, 64, 1, 1)})
    folder, code = compile_model(model, [(1, "x86_64")])
    assert code == 0
    cpu = {part.path: part for part in _outcome(folder).artifacts[0].manifest.cpu}
    assert set(cpu) == {"model.so", "model_cpu.so"}
    one_image_bytes = 64 * 4 * 4 * 4
    twin = cpu["model_cpu.so"]
    assert 2 * one_image_bytes <= twin.activation_bytes <= 3 * one_image_bytes
    assert [name for name in twin.unscheduled_kernels if "sinh" in name]


def test_progress_is_complete_and_in_order(compile_model: Any) -> None:
    folder, code = compile_model(_network(), [(1, "x86_64"), (4, "x86_64")])
    assert code == 0
    lines = (folder / "events.jsonl").read_text().splitlines()
    events = [StageEvent.model_validate_json(line) for line in lines]
    done = [e.done for e in events]
    assert done == sorted(done)
    assert events[-1].done == events[-1].total


def test_samples_of_another_size_are_refused_with_both_shapes(
    compile_model: Any,
) -> None:
    images = weights(2, 1, 3, 9, 9)  # another size than the model's
    folder, code = compile_model(_network(), [(4, "x86_64")], dataset={"x": images})
    assert code == 1
    problem = Problem.model_validate_json((folder / "problem.json").read_text())
    assert problem.code == "dataset.mismatch"
    assert "[1, 3, 8, 8]" in problem.detail
    assert not (folder / "outcome.json").exists()


def test_the_manifest_carries_the_settings_of_nnapi(compile_model: Any) -> None:
    settings = NnapiSettings(device="not:nnapi-reference", execute_timeout_ms=500)
    folder, code = compile_model(_network(), [(4, "x86_64")], CompileOptions(nnapi=settings))
    assert code == 0
    assert _outcome(folder).artifacts[0].manifest.nnapi_settings == {
        "device": "not:nnapi-reference",
        "execute-timeout-ms": "500",
    }
