"""Tunings as a kind of job."""

from __future__ import annotations

from pathlib import Path

from service.contracts.tasks import TUNE_TASK
from service.contracts.tuning import TuneOutcome, TuneSpec
from workers.job_kind import Fetch, JobKind
from workers.settings import WorkerSettings
from workers.tuning.job import TuneInput


def _prepare(spec: TuneSpec, folder: Path, fetch: Fetch, settings: WorkerSettings) -> TuneInput:
    model = folder / f"model.{spec.model_format}"
    fetch(spec.model_sha256, model)
    return TuneInput(spec=spec, model_path=model, stub_dir=settings.stub_dir)


TUNING = JobKind(
    task=TUNE_TASK,
    collection="tunings",
    spec=TuneSpec,
    outcome=TuneOutcome,
    entry="workers.tuning.child",
    prepare=_prepare,
    actor="tuner",
    area="tune",
)
