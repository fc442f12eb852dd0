"""Records of the tuning database in a compilation: used, named, and only where they belong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import onnx

from service.contracts.jobs import CompileOutcome, JobSpec
from service.contracts.kernels import TunedKernel
from service.contracts.targets import Abi
from tests.workers.tuning import networks
from workers.pipeline import child
from workers.pipeline.stages.ingest import ingest
from workers.tuning.host import host_abi, host_target
from workers.tuning.kernels import kernels_of
from workers.tuning.space import draw_traces

OTHER_ABI = Abi.ARMEABI_V7A  # no machine here measures for it


def compiled(folder: Path, player_library: Path, *records: TunedKernel) -> CompileOutcome:
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(networks.convolutions(), path)
    targets = [{"feature_level": 1, "abi": abi} for abi in (host_abi(), OTHER_ABI)]
    spec = JobSpec.model_validate(
        {
            "compilation_id": "cmp_test",
            "attempt": 1,
            "job_token": "",
            "model_name": "case",
            "model_format": "onnx",
            "model_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "model_size_bytes": path.stat().st_size,
            "dataset_sha256": None,
            "targets": targets,
            "options": {},
            "tuned": records,
        }
    )
    job = {
        "spec": spec.model_dump(mode="json"),
        "model_path": str(path),
        "dataset_path": None,
        "stub_dir": str(player_library.parents[2] / "worker-tests" / "toolchain"),
        "player_library": str(player_library),
    }
    (folder / "job.json").write_text(json.dumps(job))
    assert child.main(folder) == 0
    return CompileOutcome.model_validate_json((folder / "outcome.json").read_text())


def record_for(path: Path, name: str) -> TunedKernel:
    target = host_target(host_abi())
    kernels = kernels_of(ingest(path, "onnx", {}).graph.module, target)  # type: ignore[arg-type]
    [kernel] = [one for one in kernels if name in one.name]
    return TunedKernel(
        record_id="ktr_1",
        abi=host_abi(),
        signature=kernel.signature,
        trace=next(draw_traces(kernel.function, target, 1)),
        before_us=3.0,
        after_us=2.0,
    )


def twins(outcome: CompileOutcome) -> dict[Any, str]:
    return {
        artifact.target.abi: part.sha256
        for artifact in outcome.artifacts
        for part in artifact.manifest.parts
        if part.path == "model_cpu.so"
    }


def test_records_shape_the_library_and_are_named(tmp_path: Path, player_library: Path) -> None:
    plain = compiled(tmp_path / "plain", player_library)
    record = record_for(tmp_path / "plain" / "model.onnx", "depthwise")
    tuned = compiled(tmp_path / "tuned", player_library, record)
    assert record.signature in plain.kernels[host_abi()]
    assert tuned.kernels == plain.kernels
    before, after = twins(plain), twins(tuned)
    assert before[host_abi()] != after[host_abi()]
    assert before[OTHER_ABI] == after[OTHER_ABI]
    used = {
        artifact.target.abi: [one.model_dump() for one in artifact.manifest.tuned_kernels]
        for artifact in tuned.artifacts
    }
    [named] = used[host_abi()]
    assert "depthwise" in named.pop("kernel")
    assert named == {"record_id": "ktr_1", "before_us": 3.0, "after_us": 2.0}
    assert used[OTHER_ABI] == []
    assert all(artifact.manifest.tuned_kernels == () for artifact in plain.artifacts)
