"""Leases: runs in the hands of agents, fenced so that only the present holder is heard."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.bench import BenchReport
from service.contracts.errors import ErrorClass, NnfarmError, from_problem
from service.contracts.runs import (
    BenchLease,
    Lease,
    LeaseRequest,
    MeasureOptions,
    RunReport,
    RunStatus,
)
from service.db import announce
from service.resources.artifacts import service as artifacts
from service.resources.compilations.tables import CompilationRow
from service.resources.devices import quarantine
from service.resources.devices import repository as devices
from service.resources.devices import service as device_rules
from service.resources.devices.tables import DeviceRow
from service.resources.runs import benches, repository
from service.resources.runs.repository import leased_device_ids
from service.resources.runs.service import TOPIC, finish, publish, require_run
from service.resources.runs.tables import RunRow
from service.settings import Settings
from service.tokens import Grant, TokenKind, TokenSigner

__all__ = [
    "TOPIC",
    "has_work",
    "heartbeat",
    "leased_device_ids",
    "note_agent",
    "report",
    "requeue_lost",
    "take_benched",
    "take_lease",
]


def note_agent(session: Session, request: LeaseRequest) -> None:
    """The agent is alive, and so are the devices it offers."""
    devices.touch(session, request.agent_name, request.serials, utc_now())


def has_work(session: Session, request: LeaseRequest) -> bool:
    """Whether `take_lease` may find something; cheap, and takes no lock."""
    return bool(_offers(session, request))


def take_lease(
    session: Session, request: LeaseRequest, settings: Settings, tokens: TokenSigner
) -> Lease | BenchLease | None:
    """Hand one run to one of the devices offered: the one with the highest feature level."""
    now = utc_now()
    expires_at = now + timedelta(seconds=settings.run_lease_s)
    for device, candidate in _offers(session, request):
        if not repository.take(session, candidate.id, device, now, expires_at):
            continue
        if not device_rules.occupy(session, device.id):
            # Another request took the device meanwhile; the caller rolls the run back.
            raise NnfarmError("request.conflict", f"Device {device.serial} has just been taken.")
        run = repository.lock(session, candidate.id)
        assert run is not None
        publish(session, run)
        if run.tuning_id is not None:
            return _bench_lease(session, run, device, settings, tokens)
        return _lease(session, run, device, settings, tokens)
    return None


def heartbeat(session: Session, run_id: str, fence: int, lease_s: float) -> None:
    """Extend a lease.

    Raises:
        NnfarmError: ``request.fenced`` when the run has another holder, or none any more.
    """
    run = _require_holder(session, run_id, fence)
    now = utc_now()
    run.lease_expires_at = now + timedelta(seconds=lease_s)
    if device := devices.find(session, run.device_id or ""):
        device.last_seen_at = now


def take_benched(session: Session, run_id: str, word: BenchReport) -> None:
    """Keep kernels that the holder of a bench has measured.

    Raises:
        NnfarmError: ``request.fenced``, or ``request.invalid`` for kernels that it does not have.
    """
    run = _require_holder(session, run_id, word.fence)
    if run.tuning_id is None:
        raise NnfarmError("request.invalid", f"{run_id} is no run of a bench.")
    benches.keep(session, run, word.kernels)


def report(session: Session, run_id: str, word: RunReport, max_attempts: int) -> None:
    """Take the holder's final word; the same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``, or ``request.invalid`` for an empty report.
    """
    run = repository.lock(session, run_id)
    is_bench = run is not None and run.tuning_id is not None
    is_good = word.bench_done if is_bench else word.measurement is not None
    if is_good == (word.problem is not None):
        raise NnfarmError("request.invalid", "A report has a measurement or a problem, one of two.")
    if run is not None and run.fence == word.fence and run.status in repository.FINAL:
        return
    run = _require_holder(session, run_id, word.fence)
    run.log_tail = word.log_tail
    error = from_problem(word.problem) if word.problem else None
    _release(session, run)
    _judge_device(session, run, error)
    if error is None:
        run.measurement = word.measurement
        finish(session, run, RunStatus.SUCCEEDED)
    else:
        _fail_attempt(session, run, error, max_attempts)


def requeue_lost(session: Session, max_attempts: int) -> None:
    """Runs whose agent fell silent go back to the queue, or fail after the last attempt."""
    now = utc_now()
    for run_id in repository.ids_with_expired_lease(session, now):
        run = repository.lock(session, run_id)
        # It may have been reported, or its lease extended, before we had the lock.
        if run is None or run.status is not RunStatus.LEASED or run.lease_expires_at is None:
            continue
        if run.lease_expires_at < now:
            error = NnfarmError(
                "run.device_lost", f"Agent {run.agent_name} fell silent during the run."
            )
            _release(session, run)
            _fail_attempt(session, run, error, max_attempts)


def _fail_attempt(session: Session, run: RunRow, error: NnfarmError, max_attempts: int) -> None:
    """Try again where another try may help: after failures of device or infrastructure."""
    may_help = error.kind.error_class in (ErrorClass.DEVICE, ErrorClass.INFRA)
    if not may_help or run.attempt >= max_attempts:
        finish(session, run, RunStatus.FAILED, error)
        return
    run.status = RunStatus.QUEUED
    run.fence += 1
    run.problem = error.to_problem()
    run.avoided_device_id = run.device_id
    run.device_id = run.wanted_device_id
    run.lease_expires_at = None
    run.queued_at = utc_now()
    publish(session, run)
    announce(session, TOPIC)


def _judge_device(session: Session, run: RunRow, error: NnfarmError | None) -> None:
    """Count a device error against the run's device; all else but `infra` speaks for it.

    Only what an agent reports counts: when an agent falls silent, that is not its device's fault.
    """
    assert run.device_id is not None  # it has a holder
    error_class = error.kind.error_class if error else None
    if error_class is ErrorClass.DEVICE:
        elsewhere = run.artifact_id is not None and repository.has_succeeded_elsewhere(
            session, run.artifact_id, run.device_id
        )
        quarantine.note_fault(session, run.device_id, run.id, elsewhere)
    elif error_class is not ErrorClass.INFRA:
        quarantine.note_health(session, run.device_id)


def _release(session: Session, run: RunRow) -> None:
    if run.device_id is not None:
        device_rules.release(session, run.device_id)
        announce(session, TOPIC)


def _require_holder(session: Session, run_id: str, fence: int) -> RunRow:
    run = repository.lock(session, run_id) or require_run(session, run_id)
    if run.status is not RunStatus.LEASED or run.fence != fence:
        raise NnfarmError(
            "request.fenced",
            f"Lease {fence} of {run_id} is over: the run is {run.status} with fence {run.fence}.",
            fence=run.fence,
        )
    return run


def _offers(session: Session, request: LeaseRequest) -> list[tuple[DeviceRow, RunRow]]:
    """Pairs that could start now, the highest feature level first."""
    free = devices.online_of_agent(session, request.agent_name, request.serials)
    pairs = [
        (device, run)
        for device in free
        for run in repository.candidates(session, device, benches=request.takes_benches)
        if run.avoided_device_id != device.id or not _has_alternative(session, run, device)
    ]
    return sorted(pairs, key=lambda pair: -pair[1].feature_level)


def _has_alternative(session: Session, run: RunRow, failed: DeviceRow) -> bool:
    """Whether some other attached device can do a run that this one has just failed."""
    if run.wanted_device_id is not None:
        return False
    return any(
        row.id != failed.id
        and device_rules.is_attached(row)
        and device_rules.can_run(row, run.abi, run.needed_level)
        for row in devices.all_devices(session)
    )


def _lease(
    session: Session, run: RunRow, device: DeviceRow, settings: Settings, tokens: TokenSigner
) -> Lease:
    assert run.artifact_id is not None
    artifact = artifacts.require_artifact(session, run.artifact_id)
    compilation = session.get(CompilationRow, run.compilation_id)
    assert compilation is not None
    assert compilation.evaluation is not None  # set in the commit that made the artifact
    return Lease(
        run_id=run.id,
        fence=run.fence,
        serial=device.serial,
        lease_token=tokens.sign(Grant(TokenKind.LEASE, run.id, run.fence)),
        expires_in_s=settings.run_lease_s,
        artifact_id=artifact.id,
        abi=artifact.abi,
        manifest=artifact.manifest,
        evaluation=compilation.evaluation,
        measure=MeasureOptions(),
    )


def _bench_lease(
    session: Session, run: RunRow, device: DeviceRow, settings: Settings, tokens: TokenSigner
) -> BenchLease:
    return BenchLease(
        run_id=run.id,
        fence=run.fence,
        serial=device.serial,
        lease_token=tokens.sign(Grant(TokenKind.LEASE, run.id, run.fence)),
        expires_in_s=settings.run_lease_s,
        abi=run.abi,
        bench=benches.left_of(session, run),
    )
