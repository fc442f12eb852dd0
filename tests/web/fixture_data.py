"""Three compilations: done, running, failed."""

from __future__ import annotations

from fixture_bench import ABIS, ARTIFACTS, DONE, LEVELS, SIGNATURE, at, sha256
from fixture_runs import ORIGINAL_TOP1, RUNS, run_summary

from service.contracts.errors import NnfarmError
from service.contracts.jobs import (
    CompileOptions,
    EvaluationSet,
    JobStatus,
    ModelFormat,
    Stage,
)
from service.contracts.targets import Abi
from service.resources.artifacts.schemas import ArtifactSummary
from service.resources.compilations.schemas import Compilation
from service.resources.models.schemas import Model

RUNNING, FAILED = "cmp_running", "cmp_failed"


def model(name: str, size_bytes: int) -> Model:
    return Model(
        id=f"mod_{name}",
        name=name,
        format=ModelFormat.ONNX,
        sha256=sha256(name),
        size_bytes=size_bytes,
        signature=SIGNATURE,
        created_at=at(20),
    )


def _done() -> Compilation:
    return Compilation(
        id=DONE,
        model=model("keyword-spotter", 1_284_552),
        dataset_id="dat_1",
        options=CompileOptions(),
        attempt=1,
        status=JobStatus.SUCCEEDED,
        stage=Stage.PACKAGE,
        done=38,
        total=38,
        levels=list(LEVELS),
        abis=list(ABIS),
        cached=False,
        error=None,
        artifacts=[
            ArtifactSummary(
                id=one.id,
                feature_level=one.feature_level,
                abi=one.abi,
                size_bytes=one.size_bytes,
                needed_level=one.manifest.needed_level,
                offloaded_count=one.manifest.offloaded_count,
                operation_count=one.manifest.operation_count,
                subgraph_count=one.manifest.subgraph_count,
            )
            for one in ARTIFACTS.values()
        ],
        runs=[run_summary(run) for run in RUNS.values()],
        evaluation=EvaluationSet(
            sample_count=64,
            inputs_sha256=sha256("inputs"),
            expected_sha256=sha256("expected"),
            labels=tuple(index % 12 for index in range(64)),
            original_top1=ORIGINAL_TOP1,
            synthetic=False,
        ),
        stage_durations_us={
            "ingest": 412_000,
            "reference": 1_830_000,
            "partition": 2_210_000,
            "codegen": 640_000,
            "build": 18_900_000,
            "link": 1_120_000,
            "package": 230_000,
        },
        created_at=at(14),
        started_at=at(14, 1),
        finished_at=at(14, 27),
    )


def running() -> Compilation:
    """A compilation the worker has begun, with nothing built yet."""
    return Compilation(
        id=RUNNING,
        model=model("mobilenet-v2", 13_976_064),
        dataset_id=None,
        options=CompileOptions(),
        attempt=1,
        status=JobStatus.RUNNING,
        stage=Stage.PARTITION,
        done=2,
        total=10,
        levels=[1, 4],
        abis=[Abi.ARM64_V8A],
        cached=False,
        error=None,
        artifacts=[],
        runs=[],
        evaluation=None,
        stage_durations_us={},
        created_at=at(2),
        started_at=at(2, 1),
        finished_at=None,
    )


def _failed() -> Compilation:
    error = NnfarmError(
        "compile.unsupported_operation",
        "Operation NonMaxSuppression (node /post/NonMaxSuppression) cannot be imported.",
        op_type="NonMaxSuppression",
        node="/post/NonMaxSuppression",
    )
    return running().model_copy(
        update={
            "id": FAILED,
            "model": model("detector-with-nms", 6_201_344),
            "status": JobStatus.FAILED,
            "stage": Stage.INGEST,
            "done": 0,
            "error": error.to_problem(),
            "created_at": at(95),
            "started_at": at(95, 1),
            "finished_at": at(95, 5),
        }
    )


def compilations() -> dict[str, Compilation]:
    """Fresh copies, newest first."""
    return {one.id: one for one in (running(), _done(), _failed())}
