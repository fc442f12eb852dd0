"""A compilation as a worker's job: claimed under a lease, fenced by its attempt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from service import outbox
from service.columns import utc_now
from service.contracts.errors import ErrorClass, NnfarmError, Problem
from service.contracts.jobs import (
    CompilationStatus,
    CompileFailure,
    CompileOutcome,
    JobSpec,
    StageEvent,
)
from service.contracts.tasks import COMPILE_QUEUE, COMPILE_TASK
from service.resources.artifacts import service as artifacts
from service.resources.blobs import repository as blobs
from service.resources.compilations import repository
from service.resources.compilations.service import publish_status, require_compilation
from service.resources.compilations.tables import CompilationRow
from service.resources.datasets import service as datasets
from service.resources.models import service as models
from service.resources.runs import service as runs
from service.settings import Settings
from service.tokens import Grant, TokenKind, TokenSigner

_LOG_LETTERS = 16384
_LONGEST_RESEND_DOUBLINGS = 6


def claim(
    session: Session,
    compilation_id: str,
    worker_name: str,
    settings: Settings,
    tokens: TokenSigner,
) -> JobSpec:
    """Hand the job to a worker.

    Raises:
        NnfarmError: ``request.conflict`` when it is final or somebody holds a live lease. That
            includes the same worker: its queue may deliver a task again while it works on it.
    """
    row = _lock(session, compilation_id)
    now = utc_now()
    if row.status is not CompilationStatus.QUEUED:
        detail = f"{compilation_id} is {row.status}"
        if row.status is CompilationStatus.RUNNING:
            detail = f"{compilation_id} is in the hands of worker {row.worker_name}"
        raise NnfarmError("request.conflict", f"{detail}.")
    row.status = CompilationStatus.RUNNING
    row.attempt += 1
    row.worker_name = worker_name
    row.started_at = row.started_at or now
    row.problem = None
    row.stage, row.done, row.total = None, 0, 0
    _extend(row, now, settings.job_lease_s)
    publish_status(session, row)
    return _spec(session, row, tokens)


def record_events(
    session: Session,
    compilation_id: str,
    attempt: int,
    events: Sequence[StageEvent],
    lease_s: float,
) -> None:
    """Take progress, and extend the lease.

    Raises:
        NnfarmError: ``request.fenced``.
    """
    row = _require_holder(session, compilation_id, attempt)
    _extend(row, utc_now(), lease_s)
    for event in events:
        row.stage, row.done, row.total = event.stage, event.done, event.total
        repository.append_event(session, row.id, "progress", event.model_dump(mode="json"))


def complete(session: Session, compilation_id: str, outcome: CompileOutcome) -> None:
    """Take the result, and make the runs that were wished for; the same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``, or ``request.invalid`` for a result that does not fit.
    """
    row = _lock(session, compilation_id)
    if row.status is CompilationStatus.SUCCEEDED and row.attempt == outcome.attempt:
        return
    _require_attempt(row, outcome.attempt)
    _check_outcome(session, row, outcome)
    model = models.require_model(session, row.model_id)
    built = artifacts.add_artifacts(session, row.id, model.sha256, outcome.artifacts)
    row.evaluation = outcome.evaluation
    row.stage_durations_us = outcome.stage_durations_us
    row.child_duration_us = outcome.child_duration_us
    row.done = row.total
    _finish(session, row, CompilationStatus.SUCCEEDED, None)
    for wish in row.run_wishes:
        runs.create_runs(session, built, wish)


def fail(session: Session, compilation_id: str, failure: CompileFailure, max_attempts: int) -> None:
    """Take a failure: of infrastructure it means another attempt. The same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``.
    """
    row = _lock(session, compilation_id)
    said_before = row.status in (CompilationStatus.FAILED, CompilationStatus.QUEUED)
    if said_before and row.attempt == failure.attempt:
        return
    _require_attempt(row, failure.attempt)
    row.log_tail = failure.log_tail[-_LOG_LETTERS:]
    _fail_attempt(session, row, failure.problem, max_attempts)


def requeue_lost(session: Session, max_attempts: int) -> None:
    """Jobs whose worker fell silent go back to the queue, or fail after the last attempt."""
    now = utc_now()
    for compilation_id in repository.ids_with_expired_lease(session, now):
        row = _lock(session, compilation_id)
        # It may have been finished, or its lease extended, before we had the lock.
        if row.status is not CompilationStatus.RUNNING or row.lease_expires_at is None:
            continue
        if row.lease_expires_at < now:
            error = NnfarmError(
                "infra.worker_lost",
                f"Worker {row.worker_name} fell silent in attempt {row.attempt}.",
                attempt=row.attempt,
            )
            _fail_attempt(session, row, error.to_problem(), max_attempts)


def resend_forgotten(session: Session, after_s: float) -> None:
    """Send the task again for jobs nobody has claimed: a queue may lose its memory.

    The wait doubles each time, so that a long queue is not filled with repetitions.
    """
    now = utc_now()
    for row in repository.queued(session, now - timedelta(seconds=after_s)):
        doublings = min(row.sent_count - 1, _LONGEST_RESEND_DOUBLINGS)
        due = row.sent_at + timedelta(seconds=after_s * 2**doublings)
        if due > now or outbox.has_unsent(session, row.id):
            continue
        locked = _lock(session, row.id)
        if locked.status is CompilationStatus.QUEUED:
            _send(session, locked, 0.0)
            locked.sent_count += 1


def _fail_attempt(
    session: Session, row: CompilationRow, problem: Problem, max_attempts: int
) -> None:
    if problem.error_class is not ErrorClass.INFRA or row.attempt >= max_attempts:
        _finish(session, row, CompilationStatus.FAILED, problem)
        return
    row.status = CompilationStatus.QUEUED
    row.problem = problem
    row.lease_expires_at = None
    _send(session, row, delay_s=2.0 ** (row.attempt - 1))
    row.sent_count = 1
    publish_status(session, row)


def _finish(
    session: Session, row: CompilationRow, status: CompilationStatus, problem: Problem | None
) -> None:
    row.status = status
    row.problem = problem
    row.lease_expires_at = None
    row.finished_at = utc_now()
    publish_status(session, row)


def _send(session: Session, row: CompilationRow, delay_s: float) -> None:
    outbox.enqueue(session, COMPILE_TASK, COMPILE_QUEUE, row.id, delay_s)
    row.sent_at = utc_now() + timedelta(seconds=delay_s)


def _spec(session: Session, row: CompilationRow, tokens: TokenSigner) -> JobSpec:
    model = models.require_model(session, row.model_id)
    dataset = datasets.require_dataset(session, row.dataset_id) if row.dataset_id else None
    return JobSpec(
        compilation_id=row.id,
        attempt=row.attempt,
        job_token=tokens.sign(Grant(TokenKind.JOB, row.id, row.attempt)),
        model_name=model.name,
        model_format=model.format,
        model_sha256=model.sha256,
        model_size_bytes=model.size_bytes,
        dataset_sha256=dataset.sha256 if dataset else None,
        targets=row.targets,
        options=row.options,
    )


def _check_outcome(session: Session, row: CompilationRow, outcome: CompileOutcome) -> None:
    delivered = [item.target for item in outcome.artifacts]
    if len(delivered) != len(row.targets) or set(delivered) != set(row.targets):
        raise NnfarmError("request.invalid", "The artifacts are not the targets of the job.")
    evaluation = outcome.evaluation
    wanted = {evaluation.inputs_sha256, evaluation.expected_sha256}
    if missing := sorted(wanted - blobs.find_many(session, wanted).keys()):
        raise NnfarmError("request.invalid", f"Evaluation blob {missing[0]} is not stored.")


def _extend(row: CompilationRow, now: datetime, lease_s: float) -> None:
    row.lease_expires_at = now + timedelta(seconds=lease_s)


def _lock(session: Session, compilation_id: str) -> CompilationRow:
    row = repository.lock(session, compilation_id)
    return row or require_compilation(session, compilation_id)


def _require_holder(session: Session, compilation_id: str, attempt: int) -> CompilationRow:
    row = _lock(session, compilation_id)
    _require_attempt(row, attempt)
    return row


def _require_attempt(row: CompilationRow, attempt: int) -> None:
    if row.status is not CompilationStatus.RUNNING or row.attempt != attempt:
        raise NnfarmError(
            "request.fenced",
            f"Attempt {attempt} is over: {row.id} is {row.status} in attempt {row.attempt}.",
            attempt=row.attempt,
        )
