"""Compilations as a kind of job."""

from __future__ import annotations

from pathlib import Path

from service.contracts.jobs import CompileOutcome, JobSpec
from service.contracts.tasks import COMPILE_TASK
from workers.job_kind import Fetch, JobKind
from workers.pipeline.plan import JobInput
from workers.settings import WorkerSettings


def _prepare(spec: JobSpec, folder: Path, fetch: Fetch, settings: WorkerSettings) -> JobInput:
    model, dataset = folder / f"model.{spec.model_format}", folder / "dataset.npz"
    fetch(spec.model_sha256, model)
    if spec.dataset_sha256 is not None:
        fetch(spec.dataset_sha256, dataset)
    return JobInput(
        spec=spec,
        model_path=model,
        dataset_path=None if spec.dataset_sha256 is None else dataset,
        stub_dir=settings.stub_dir,
        player_library=settings.player_library,
    )


COMPILATION = JobKind(
    task=COMPILE_TASK,
    collection="compilations",
    spec=JobSpec,
    outcome=CompileOutcome,
    entry="workers.pipeline.child",
    prepare=_prepare,
    actor="compiler",
    area="compile",
)
