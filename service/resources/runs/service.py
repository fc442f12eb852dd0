"""Rules of runs: which are made, and which nobody can do."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Literal

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.bench import Bench
from service.contracts.errors import NnfarmError
from service.contracts.runs import RunStatus
from service.db import announce
from service.identifiers import new_id
from service.jobs import repository as jobs
from service.resources.artifacts import service as artifacts
from service.resources.artifacts.tables import ArtifactRow
from service.resources.compilations.tables import CompilationRow
from service.resources.devices import repository as devices
from service.resources.devices import service as device_rules
from service.resources.devices.tables import DeviceRow
from service.resources.runs import benches, repository
from service.resources.runs.schemas import run_summary
from service.resources.runs.tables import RunRow
from service.resources.tunings.tables import TuningRow

TOPIC = "runs"
"""The bell that rings when there may be something to lease."""

ANY = "any"


def create_runs(
    session: Session, built: Iterable[ArtifactRow], wish: Literal["any", "all"] | list[str]
) -> list[RunRow]:
    """Make the runs a compile request wished for.

    `any`: one an artifact, on whatever device comes. `all`: one an artifact and attached device
    that can; where there is none, one open run, which is skipped with its reason if none comes. A
    list: one an artifact and device; pairs that do not fit are there as skipped, with the reason.
    """
    rows: list[RunRow] = []
    attached = [row for row in devices.all_devices(session) if device_rules.is_attached(row)]
    for artifact in built:
        targets: list[DeviceRow | None] = [None]
        if wish == "all":
            able = [row for row in attached if not _obstacle(row, artifact)]
            targets = [*able] if able else [None]
        elif wish != ANY:
            targets = [device_rules.require_device(session, device_id) for device_id in wish]
        rows.extend(_add(session, artifact, device) for device in targets)
    return rows


def create_run(session: Session, artifact_id: str, device_id: str) -> RunRow:
    """Make one run of one artifact.

    Raises:
        NnfarmError: ``request.not_found``, or ``run.no_device`` when the device can never do it.
    """
    artifact = artifacts.require_artifact(session, artifact_id)
    device = None if device_id == ANY else device_rules.require_device(session, device_id)
    if device is not None and (reason := _obstacle(device, artifact)):
        raise NnfarmError("run.no_device", reason)
    return _add(session, artifact, device)


def create_bench_run(session: Session, tuning: TuningRow, bench: Bench) -> None:
    """Make the run that measures a tuning's bench."""
    row = benches.make_run(tuning, bench)
    session.add(row)
    session.flush()
    publish(session, row)
    announce(session, TOPIC)


def abandon(session: Session, run: RunRow) -> None:
    """End a bench's run, whose tuning was cancelled; its agent is told by the next heartbeat."""
    if run.status in repository.FINAL:
        return
    if run.status is RunStatus.LEASED and run.device_id is not None:
        device_rules.release(session, run.device_id)
        announce(session, TOPIC)
    finish(session, run, RunStatus.FAILED, NnfarmError("job.cancelled", "It was cancelled."))


def require_run(session: Session, run_id: str) -> RunRow:
    """The run with this id.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.find(session, run_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no run {run_id}.")
    return row


def skip_hopeless(session: Session, patience_s: float) -> None:
    """Skip runs that have waited while no device that can do them was there."""
    moment = utc_now() - timedelta(seconds=patience_s)
    waiting = repository.queued(session, moment)
    if not waiting:
        return
    known = devices.all_devices(session)
    # A device that has only just gone may come back: it counts for as long as a run waits. One in
    # quarantine rests for longer than that.
    recent = [
        row
        for row in known
        if row.quarantined_at is None
        and (device_rules.is_attached(row) or row.last_seen_at >= moment)
    ]
    for run in waiting:
        wanted = [row for row in recent if run.wanted_device_id in (None, row.id)]
        if any(device_rules.can_run(row, run.abi, run.needed_level) for row in wanted):
            continue
        locked = repository.lock(session, run.id)
        if locked is not None and locked.status is RunStatus.QUEUED:
            detail = _why_hopeless(session, locked, patience_s)
            finish(session, locked, RunStatus.SKIPPED, NnfarmError("run.no_device", detail))


def finish(
    session: Session, row: RunRow, status: RunStatus, error: NnfarmError | None = None
) -> None:
    """Bring a run to its end."""
    row.status = status
    row.problem = error.to_problem() if error else None
    row.finished_at = utc_now()
    row.lease_expires_at = None
    publish(session, row)


def publish(session: Session, row: RunRow) -> None:
    """Tell followers of the compilation, or of the tuning, how the run is."""
    if row.tuning_id is not None:
        benches.publish(session, row)
        return
    assert row.compilation_id is not None
    device = devices.find(session, row.device_id) if row.device_id else None
    data = run_summary(row, device).model_dump(mode="json")
    jobs.append_event(session, CompilationRow, row.compilation_id, "run", data)


def _add(session: Session, artifact: ArtifactRow, device: DeviceRow | None) -> RunRow:
    now = utc_now()
    device_id = device.id if device else None
    row = RunRow(
        id=new_id("run"),
        compilation_id=artifact.compilation_id,
        artifact_id=artifact.id,
        feature_level=artifact.feature_level,
        abi=artifact.abi,
        needed_level=_needed_level(artifact),
        wanted_device_id=device_id,
        device_id=device_id,
        status=RunStatus.QUEUED,
        attempt=0,
        fence=0,
        log_tail="",
        created_at=now,
        queued_at=now,
    )
    session.add(row)
    session.flush()
    if device is not None and (reason := _obstacle(device, artifact)):
        finish(session, row, RunStatus.SKIPPED, NnfarmError("run.no_device", reason))
    else:
        publish(session, row)
        announce(session, TOPIC)
    return row


def _needed_level(artifact: ArtifactRow) -> int:
    return max(artifact.feature_level, artifact.manifest.needed_level)


def _obstacle(device: DeviceRow, artifact: ArtifactRow) -> str:
    return device_rules.obstacle(device, artifact.abi, _needed_level(artifact))


def _why_hopeless(session: Session, run: RunRow, patience_s: float) -> str:
    if run.wanted_device_id is not None:
        device = device_rules.require_device(session, run.wanted_device_id)
        reason = device_rules.obstacle(device, run.abi, run.needed_level)
        if not reason and device.quarantined_at is not None:
            reason = f"{device.description.name} is in quarantine: its last runs all failed on it."
        return reason or f"{device.description.name} was not attached for {patience_s:g} s."
    return (
        f"No usable device with ABI {run.abi} and NNAPI feature level {run.needed_level} or higher "
        f"was attached for {patience_s:g} s."
    )
