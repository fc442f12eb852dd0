"""Rules of tune requests."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.contracts.jobs import JobStatus
from service.contracts.tuning import TuneOutcome
from service.identifiers import new_id
from service.jobs import lifecycle
from service.jobs.keys import content_key
from service.resources.models import repository as models
from service.resources.models import service as model_rules
from service.resources.models.schemas import Model
from service.resources.tunings import records
from service.resources.tunings.kind import TUNING
from service.resources.tunings.schemas import Tuning, TuningRecord, TuningRequest
from service.resources.tunings.tables import TuningRecordRow, TuningRow


def request_tuning(
    session: Session, request: TuningRequest, compiler_version: str
) -> tuple[TuningRow, bool]:
    """Begin a tuning, or join the same one that is under way; the row and whether it is new.

    One that has succeeded is not joined: another one goes on where it stopped.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    model = model_rules.require_model(session, request.model_id)
    key = content_key(
        kind="tuning",
        model=model.sha256,
        options=request.options.model_dump(mode="json"),
        compiler=compiler_version,
        earlier=_count_done(session, request.model_id),
    )
    return lifecycle.begin_or_join(
        session,
        TUNING,
        key,
        lambda: TuningRow(
            id=new_id("tun"),
            model_id=request.model_id,
            cache_key=key,
            options=request.options,
            compiler_version=compiler_version,
        ),
    )


def complete(session: Session, tuning_id: str, outcome: TuneOutcome) -> None:
    """Take the result; its records came with the events. The same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``.
    """
    row = lifecycle.lock_for_result(session, TUNING, tuning_id, outcome.attempt)
    if row is None:
        return
    row.abi, row.machine = outcome.abi, outcome.machine
    row.kernel_count, row.known_count = outcome.kernel_count, outcome.known_count
    row.before, row.after = outcome.before, outcome.after
    lifecycle.succeed(session, row, outcome)


def views(session: Session, rows: Sequence[TuningRow]) -> list[Tuning]:
    """Rows as the API shows them, with the model and the records of each."""
    found = models.find_many(session, [row.model_id for row in rows])
    kept = records.of_tunings(session, [row.id for row in rows])
    return [
        Tuning(
            id=row.id,
            model=Model.model_validate(found[row.model_id]),
            options=row.options,
            status=row.status,
            stage=row.stage,
            done=row.done,
            total=row.total,
            attempt=row.attempt,
            error=row.problem,
            abi=row.abi,
            machine=row.machine,
            kernel_count=row.kernel_count,
            known_count=row.known_count,
            before=row.before,
            after=row.after,
            records=[_record(record) for record in kept.get(row.id, ())],
            stage_durations_us=row.stage_durations_us,
            created_at=row.created_at,
            started_at=row.started_at,
            finished_at=row.finished_at,
        )
        for row in rows
    ]


def _record(row: TuningRecordRow) -> TuningRecord:
    columns = {name: getattr(row, name) for name in TuningRecord.model_fields if name != "is_kept"}
    return TuningRecord(is_kept=row.trace is not None, **columns)


def _count_done(session: Session, model_id: str) -> int:
    query = select(func.count()).select_from(TuningRow)
    done = (TuningRow.model_id == model_id) & (TuningRow.status == JobStatus.SUCCEEDED)
    return session.scalar(query.where(done)) or 0
