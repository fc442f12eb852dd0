"""The life of a job of any kind: asked for, claimed under a lease, fenced by its attempt, over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from pydantic import BaseModel
from sqlalchemy.orm import Session

from service import outbox
from service.columns import utc_now
from service.contracts.errors import ErrorClass, NnfarmError, Problem
from service.contracts.jobs import JobFailure, JobOutcome, JobStatus, StageEvent
from service.jobs import repository
from service.jobs.kind import FINAL, JobKind, Row
from service.jobs.tables import JobRow
from service.tokens import Grant, TokenKind, TokenSigner

_LOG_LETTERS = 16384


def begin_or_join(
    session: Session, kind: JobKind[Row], cache_key: str, make_row: Callable[[], Row]
) -> tuple[Row, bool]:
    """Begin a job, or join the one of the same key; answers the row and whether it is new.

    Raises:
        NnfarmError: ``infra.unavailable``.
    """
    # Twice: another request may insert the same key between our look and our insert, or fail
    # between our insert and our second look.
    for _ in range(2):
        existing = repository.lock_by_key(session, kind, cache_key)
        if existing is not None:
            return existing, False
        row = make_row()
        if repository.add(session, row):
            outbox.enqueue(session, kind.task, kind.queue, row.id)
            publish_status(session, row)
            return row, True
    raise NnfarmError("infra.unavailable", "The same request is changing right now; try again.")


def require(session: Session, kind: JobKind[Row], job_id: str) -> Row:
    """The job with this id.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.find(session, kind, job_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no {kind.name} {job_id}.")
    return row


def claim(
    session: Session,
    kind: JobKind[Row],
    job_id: str,
    worker_name: str,
    lease_s: float,
    tokens: TokenSigner,
) -> BaseModel:
    """Hand the job to a worker; answers the kind's spec.

    Raises:
        NnfarmError: ``request.conflict`` when it is final or somebody holds a live lease. That
            includes the same worker: its queue may deliver a task again while it works on it.
    """
    row = _lock(session, kind, job_id)
    if row.status is not JobStatus.QUEUED:
        detail = f"{job_id} is {row.status}"
        if row.status is JobStatus.RUNNING:
            detail = f"{job_id} is in the hands of worker {row.worker_name}"
        raise NnfarmError("request.conflict", f"{detail}.")
    row.status = JobStatus.RUNNING
    row.attempt += 1
    row.worker_name = worker_name
    row.started_at = row.started_at or utc_now()
    row.problem = None
    row.stage, row.done, row.total = None, 0, 0
    extend(row, lease_s)
    publish_status(session, row)
    return kind.make_spec(session, row, tokens.sign(Grant(TokenKind.JOB, row.id, row.attempt)))


def record_events(
    session: Session,
    kind: JobKind[Row],
    job_id: str,
    attempt: int,
    events: Sequence[StageEvent],
    lease_s: float,
) -> None:
    """Take progress, and extend the lease.

    Raises:
        NnfarmError: ``request.fenced``.
    """
    row = _lock(session, kind, job_id)
    _require_attempt(row, attempt)
    extend(row, lease_s)
    for event in events:
        row.stage, row.done, row.total = event.stage, event.done, event.total
        kind.take_event(session, row, event)
        repository.append_event(
            session, kind.row, row.id, "progress", event.model_dump(mode="json")
        )


def extend(row: JobRow, lease_s: float) -> None:
    """Let the lease last so long from now."""
    row.lease_expires_at = utc_now() + timedelta(seconds=lease_s)


def lock_for_result(session: Session, kind: JobKind[Row], job_id: str, attempt: int) -> Row | None:
    """The job an attempt delivers; None where it has delivered it, or handed it over, before.

    Raises:
        NnfarmError: ``request.fenced``.
    """
    row = _lock(session, kind, job_id)
    if row.attempt == attempt and (row.status is JobStatus.SUCCEEDED or _is_handed_over(row)):
        return None
    _require_attempt(row, attempt)
    return row


def hand_over(row: JobRow, outcome: JobOutcome) -> None:
    """Let a job run on without its worker, whose attempt is over: no lease can end it now."""
    _take_durations(row, outcome)
    row.lease_expires_at = None


def succeed(session: Session, row: JobRow, outcome: JobOutcome) -> None:
    """End a job whose result is kept."""
    _take_durations(row, outcome)
    row.done = row.total
    finish(session, row, JobStatus.SUCCEEDED, None)


def fail(
    session: Session, kind: JobKind[Row], job_id: str, failure: JobFailure, max_attempts: int
) -> None:
    """Take a failure: of infrastructure it means another attempt. The same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``.
    """
    row = _lock(session, kind, job_id)
    said_before = row.status in (JobStatus.FAILED, JobStatus.QUEUED)
    if said_before and row.attempt == failure.attempt:
        return
    _require_attempt(row, failure.attempt)
    row.log_tail = failure.log_tail[-_LOG_LETTERS:]
    fail_attempt(session, kind, row, failure.problem, max_attempts)


def cancel(session: Session, kind: JobKind[Row], job_id: str) -> Row:
    """End a job that is not over: its worker is told by its next report. Twice is fine.

    Raises:
        NnfarmError: ``request.conflict`` when it is over.
    """
    row = _lock(session, kind, job_id)
    if row.status not in FINAL:
        error = NnfarmError("job.cancelled", f"{job_id} was cancelled.")
        finish(session, row, JobStatus.FAILED, error.to_problem())
    elif row.problem is None or row.problem.code != "job.cancelled":
        raise NnfarmError("request.conflict", f"{job_id} is {row.status}.")
    return row


def fail_attempt(
    session: Session, kind: JobKind[Row], row: Row, problem: Problem, max_attempts: int
) -> None:
    """End an attempt: the job is queued again after an error of infrastructure, else it failed."""
    if problem.error_class is not ErrorClass.INFRA or row.attempt >= max_attempts:
        finish(session, row, JobStatus.FAILED, problem)
        return
    row.status = JobStatus.QUEUED
    row.problem = problem
    row.lease_expires_at = None
    send(session, kind, row, delay_s=2.0 ** (row.attempt - 1))
    row.sent_count = 1
    publish_status(session, row)


def finish(session: Session, row: JobRow, status: JobStatus, problem: Problem | None) -> None:
    """Put a job into a final state."""
    row.status = status
    row.problem = problem
    row.lease_expires_at = None
    row.finished_at = utc_now()
    publish_status(session, row)


def send(session: Session, kind: JobKind[Row], row: Row, delay_s: float) -> None:
    """Have the job's task sent with this commit."""
    outbox.enqueue(session, kind.task, kind.queue, row.id, delay_s)
    row.sent_at = utc_now() + timedelta(seconds=delay_s)


def publish_status(session: Session, row: JobRow) -> None:
    """Tell followers the job's status."""
    data = {
        "status": row.status.value,
        "attempt": row.attempt,
        "error": row.problem.model_dump(mode="json") if row.problem else None,
    }
    repository.append_event(session, type(row), row.id, "status", data)


def _lock(session: Session, kind: JobKind[Row], job_id: str) -> Row:
    row = repository.lock(session, kind, job_id)
    return row or require(session, kind, job_id)


def _take_durations(row: JobRow, outcome: JobOutcome) -> None:
    row.stage_durations_us = outcome.stage_durations_us
    row.child_duration_us = outcome.child_duration_us


def _is_handed_over(row: JobRow) -> bool:
    return row.status is JobStatus.RUNNING and row.lease_expires_at is None


def _require_attempt(row: JobRow, attempt: int) -> None:
    is_held = row.status is JobStatus.RUNNING and not _is_handed_over(row)
    if not is_held or row.attempt != attempt:
        raise NnfarmError(
            "request.fenced",
            f"Attempt {attempt} is over: {row.id} is {row.status} in attempt {row.attempt}.",
            attempt=row.attempt,
        )
