"""Rules of tune requests."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.contracts.errors import NnfarmError
from service.contracts.jobs import JobStatus, Stage
from service.contracts.tuning import TuneOutcome
from service.identifiers import new_id
from service.jobs import lifecycle
from service.jobs.keys import content_key
from service.resources.blobs import repository as blobs
from service.resources.devices import repository as devices
from service.resources.devices.tables import DeviceRow
from service.resources.models import repository as models
from service.resources.models import service as model_rules
from service.resources.models.schemas import Model
from service.resources.runs import benches
from service.resources.runs import service as runs
from service.resources.runs.schemas import RunDevice
from service.resources.tunings import records
from service.resources.tunings.devices import name_device
from service.resources.tunings.kind import TUNING, find_target
from service.resources.tunings.schemas import Tuning, TuningRecord, TuningRequest
from service.resources.tunings.tables import TuningRecordRow, TuningRow


def request_tuning(
    session: Session, request: TuningRequest, compiler_version: str
) -> tuple[TuningRow, bool]:
    """Begin a tuning, or join the same one that is under way; the row and whether it is new.

    One that has succeeded is not joined: another one goes on where it stopped.

    Raises:
        NnfarmError: ``request.not_found``, or ``tune.*`` of the device to measure on.
    """
    model = model_rules.require_model(session, request.model_id)
    options = name_device(session, request.options)
    key = content_key(
        kind="tuning",
        model=model.sha256,
        options=options.model_dump(mode="json"),
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
            options=options,
            compiler_version=compiler_version,
        ),
    )


def complete(session: Session, tuning_id: str, outcome: TuneOutcome) -> None:
    """Take the result; its records came with the events. The same word twice is fine.

    A tuning on a device is not over then: it is when its device has run the bench.

    Raises:
        NnfarmError: ``request.fenced``, or ``request.invalid`` for an outcome without the bench
            that was asked for.
    """
    row = lifecycle.lock_for_result(session, TUNING, tuning_id, outcome.attempt)
    if row is None:
        return
    row.abi, row.machine = outcome.abi, outcome.machine
    row.kernel_count, row.known_count = outcome.kernel_count, outcome.known_count
    row.before, row.after = outcome.before, outcome.after
    if (device := find_target(session, row)) is None:
        lifecycle.succeed(session, row, outcome)
    else:
        _begin_bench(session, row, device, outcome)


def cancel(session: Session, tuning_id: str) -> TuningRow:
    """End a tuning that is not over, and its run on a device. Twice is fine.

    Raises:
        NnfarmError: ``request.not_found``, or ``request.conflict`` when it is over.
    """
    benches.lock_run_of(session, tuning_id)  # before the tuning, as everywhere
    row = lifecycle.cancel(session, TUNING, tuning_id)
    if (run := benches.lock_run_of(session, tuning_id)) is not None:
        runs.abandon(session, run)
    return row


def _begin_bench(session: Session, row: TuningRow, device: DeviceRow, outcome: TuneOutcome) -> None:
    bench = outcome.bench
    if bench is None:
        raise NnfarmError("request.invalid", f"The outcome of {row.id} has no bench.")
    wanted = set(outcome.blob_sizes())
    if missing := sorted(wanted - blobs.find_many(session, wanted).keys()):
        raise NnfarmError("request.invalid", f"Library {missing[0]} is not stored.")
    row.machine = benches.machine_of(device)
    if not bench.kernels:  # all were settled before
        lifecycle.succeed(session, row, outcome)
        return
    lifecycle.hand_over(row, outcome)
    row.stage = Stage.BENCH
    row.total = row.done + len(bench.kernels)
    runs.create_bench_run(session, row, bench)


def views(session: Session, rows: Sequence[TuningRow]) -> list[Tuning]:
    """Rows as the API shows them, with the model and the records of each."""
    found = models.find_many(session, [row.model_id for row in rows])
    kept = records.of_tunings(session, [row.id for row in rows])
    targets = devices.find_many(session, {row.options.target for row in rows})
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
            device=_device(targets.get(row.options.target)),
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
    is_kept = row.trace is not None and not row.simulated
    return TuningRecord(is_kept=is_kept, **columns)


def _device(row: DeviceRow | None) -> RunDevice | None:
    if row is None:
        return None
    description = row.description
    return RunDevice(id=row.id, name=description.name, simulated=description.simulated)


def _count_done(session: Session, model_id: str) -> int:
    query = select(func.count()).select_from(TuningRow)
    done = (TuningRow.model_id == model_id) & (TuningRow.status == JobStatus.SUCCEEDED)
    return session.scalar(query.where(done)) or 0
