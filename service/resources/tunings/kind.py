"""Tunings as a kind of job."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.contracts.jobs import StageEvent
from service.contracts.targets import Abi
from service.contracts.tasks import COMPILE_QUEUE, TUNE_TASK
from service.contracts.tuning import HOST_TARGET, TuneSpec
from service.jobs.kind import JobKind
from service.resources.devices import service as devices
from service.resources.devices.tables import DeviceRow
from service.resources.models import service as models
from service.resources.tunings import records
from service.resources.tunings.tables import TuningRow


def _spec(session: Session, row: TuningRow, token: str) -> TuneSpec:
    model = models.require_model(session, row.model_id)
    device = find_target(session, row)
    simulated = device is not None and device.description.simulated
    left_s = row.options.time_budget_s - records.spent_s(session, row.id)
    return TuneSpec(
        tuning_id=row.id,
        attempt=row.attempt,
        job_token=token,
        model_format=model.format,
        model_sha256=model.sha256,
        time_budget_s=max(0.0, left_s),
        known=records.settled(session, row.compiler_version, simulated),
        tuned=tuple(records.faster(session, row.compiler_version, list(Abi))),
        bench_abi=device.description.abis[0] if device is not None else None,
    )


def find_target(session: Session, row: TuningRow) -> DeviceRow | None:
    """The device that a tuning measures on; None: the worker's machine."""
    if row.options.target == HOST_TARGET:
        return None
    return devices.require_device(session, row.options.target)


def _keep(session: Session, row: TuningRow, event: StageEvent) -> None:
    """At once, so that a worker that dies takes nothing along that it has measured."""
    if event.tuned is not None:
        records.keep(session, row.id, row.compiler_version, event.tuned)


TUNING = JobKind(
    name="tuning",
    collection="tunings",
    row=TuningRow,
    task=TUNE_TASK,
    queue=COMPILE_QUEUE,
    spec_type=TuneSpec,
    make_spec=_spec,
    take_event=_keep,
)
