"""What becomes of jobs by time alone: silent workers, forgotten tasks."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from service import outbox
from service.columns import utc_now
from service.contracts.errors import NnfarmError
from service.contracts.jobs import JobStatus
from service.jobs import lifecycle, repository
from service.jobs.kind import JobKind, Row

_LONGEST_RESEND_DOUBLINGS = 6


def requeue_lost(session: Session, kind: JobKind[Row], max_attempts: int) -> None:
    """Jobs whose worker fell silent go back to the queue, or fail after the last attempt."""
    now = utc_now()
    for job_id in repository.ids_with_expired_lease(session, kind, now):
        row = repository.lock(session, kind, job_id)
        # It may have been finished, or its lease extended, before we had the lock.
        if row is None or row.status is not JobStatus.RUNNING or row.lease_expires_at is None:
            continue
        if row.lease_expires_at < now:
            error = NnfarmError(
                "infra.worker_lost",
                f"Worker {row.worker_name} fell silent in attempt {row.attempt}.",
                attempt=row.attempt,
            )
            lifecycle.fail_attempt(session, kind, row, error.to_problem(), max_attempts)


def resend_forgotten(session: Session, kind: JobKind[Row], after_s: float) -> None:
    """Send the task again for jobs nobody has claimed: a queue may lose its memory.

    The wait doubles each time, so that a long queue is not filled with repetitions.
    """
    now = utc_now()
    for row in repository.queued(session, kind, now - timedelta(seconds=after_s)):
        doublings = min(row.sent_count - 1, _LONGEST_RESEND_DOUBLINGS)
        due = row.sent_at + timedelta(seconds=after_s * 2**doublings)
        if due > now or outbox.has_unsent(session, row.id):
            continue
        locked = repository.lock(session, kind, row.id)
        if locked is not None and locked.status is JobStatus.QUEUED:
            lifecycle.send(session, kind, locked, 0.0)
            locked.sent_count += 1
