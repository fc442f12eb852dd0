"""Compilations as a kind of job."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.contracts.jobs import JobSpec
from service.contracts.tasks import COMPILE_QUEUE, COMPILE_TASK
from service.jobs.kind import JobKind
from service.resources.compilations.tables import CompilationRow
from service.resources.datasets import service as datasets
from service.resources.models import service as models
from service.resources.runs import repository as runs
from service.resources.tunings import records


def _spec(session: Session, row: CompilationRow, token: str) -> JobSpec:
    model = models.require_model(session, row.model_id)
    dataset = datasets.require_dataset(session, row.dataset_id) if row.dataset_id else None
    abis = {target.abi for target in row.targets}
    return JobSpec(
        compilation_id=row.id,
        attempt=row.attempt,
        job_token=token,
        model_name=model.name,
        model_format=model.format,
        model_sha256=model.sha256,
        model_size_bytes=model.size_bytes,
        dataset_sha256=dataset.sha256 if dataset else None,
        targets=row.targets,
        options=row.options,
        tuned=tuple(records.faster(session, row.compiler_version or "", abis)),
    )


def _has_unfinished_runs(session: Session, row: CompilationRow) -> bool:
    return runs.count_unfinished(session, row.id) > 0


COMPILATION = JobKind(
    name="compilation",
    collection="compilations",
    row=CompilationRow,
    task=COMPILE_TASK,
    queue=COMPILE_QUEUE,
    spec_type=JobSpec,
    make_spec=_spec,
    has_loose_ends=_has_unfinished_runs,
)
