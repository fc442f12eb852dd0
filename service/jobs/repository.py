"""Queries on jobs of any kind and their events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.jobs import JobStatus
from service.db import announce
from service.jobs.kind import JobKind, Row
from service.jobs.tables import EventRow, JobRow
from service.pages import PageRequest, fetch_page


def find(session: Session, kind: JobKind[Row], job_id: str) -> Row | None:
    """The job with this id."""
    return session.get(kind.row, job_id)


def lock(session: Session, kind: JobKind[Row], job_id: str) -> Row | None:
    """The job as it is now, locked until the commit."""
    return session.get(kind.row, job_id, with_for_update=True, populate_existing=True)


def lock_by_key(session: Session, kind: JobKind[Row], cache_key: str) -> Row | None:
    """The job with this key that has not failed, locked until the commit."""
    query = select(kind.row).where(
        kind.row.cache_key == cache_key, kind.row.status != JobStatus.FAILED
    )
    return session.scalar(query.with_for_update())


def page(
    session: Session, kind: JobKind[Row], request: PageRequest
) -> tuple[list[Row], str | None]:
    """One page of jobs."""
    return fetch_page(session, select(kind.row), kind.row.id, request)


def add(session: Session, row: JobRow) -> bool:
    """Insert the row, unless another request has just inserted one with the same key."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True


def ids_with_expired_lease(session: Session, kind: JobKind[Row], now: datetime) -> list[str]:
    """Running jobs whose worker has been silent for too long."""
    query = select(kind.row.id).where(
        kind.row.status == JobStatus.RUNNING, kind.row.lease_expires_at < now
    )
    return list(session.scalars(query))


def queued(session: Session, kind: JobKind[Row], sent_before: datetime) -> list[Row]:
    """Jobs whose task was sent before this moment and that nobody has claimed."""
    query = select(kind.row).where(
        kind.row.status == JobStatus.QUEUED, kind.row.sent_at < sent_before
    )
    return list(session.scalars(query))


def append_event(
    session: Session, table: type[JobRow], job_id: str, event: str, data: dict[str, Any]
) -> None:
    """Add an event to the stream of the job of this table.

    Counting up locks the job's row until the commit, so sequence numbers become visible in their
    order and a reader that has seen one will never find a smaller new one.
    """
    session.flush()
    sequence = session.scalar(
        update(table)
        .where(table.id == job_id)
        .values(last_sequence=table.last_sequence + 1)
        .returning(table.last_sequence)
        .execution_options(synchronize_session=False)
    )
    assert sequence is not None
    session.add(
        EventRow(job_id=job_id, sequence=sequence, kind=event, data=data, created_at=utc_now())
    )
    announce(session, topic(job_id))


def events_after(session: Session, job_id: str, sequence: int) -> list[EventRow]:
    """Events with a larger number, in order."""
    query = select(EventRow).where(EventRow.job_id == job_id, EventRow.sequence > sequence)
    return list(session.scalars(query.order_by(EventRow.sequence)))


def topic(job_id: str) -> str:
    """The bell that rings when the job's stream has grown."""
    return f"job:{job_id}"
