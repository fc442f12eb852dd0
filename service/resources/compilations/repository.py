"""Queries on compilations and their events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.jobs import CompilationStatus
from service.db import announce
from service.pages import PageRequest, fetch_page
from service.resources.compilations.tables import CompilationRow, EventRow


def find(session: Session, compilation_id: str) -> CompilationRow | None:
    """The compilation with this id."""
    return session.get(CompilationRow, compilation_id)


def lock(session: Session, compilation_id: str) -> CompilationRow | None:
    """The compilation as it is now, locked until the commit."""
    return session.get(CompilationRow, compilation_id, with_for_update=True, populate_existing=True)


def lock_by_key(session: Session, cache_key: str) -> CompilationRow | None:
    """The compilation with this key that has not failed, locked until the commit."""
    query = select(CompilationRow).where(
        CompilationRow.cache_key == cache_key, CompilationRow.status != CompilationStatus.FAILED
    )
    return session.scalar(query.with_for_update())


def page(session: Session, request: PageRequest) -> tuple[list[CompilationRow], str | None]:
    """One page of compilations."""
    return fetch_page(session, select(CompilationRow), CompilationRow.id, request)


def add(session: Session, row: CompilationRow) -> bool:
    """Insert the row, unless another request has just inserted one with the same key."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True


def ids_with_expired_lease(session: Session, now: datetime) -> list[str]:
    """Running compilations whose worker has been silent for too long."""
    query = select(CompilationRow.id).where(
        CompilationRow.status == CompilationStatus.RUNNING, CompilationRow.lease_expires_at < now
    )
    return list(session.scalars(query))


def queued(session: Session, sent_before: datetime) -> list[CompilationRow]:
    """Compilations whose task was sent before this moment and that nobody has claimed."""
    query = select(CompilationRow).where(
        CompilationRow.status == CompilationStatus.QUEUED, CompilationRow.sent_at < sent_before
    )
    return list(session.scalars(query))


def append_event(session: Session, compilation_id: str, kind: str, data: dict[str, Any]) -> None:
    """Add an event to the compilation's stream.

    Counting up locks the compilation's row until the commit, so sequence numbers become visible in
    their order and a reader that has seen one will never find a smaller new one.
    """
    session.flush()
    sequence = session.scalar(
        update(CompilationRow)
        .where(CompilationRow.id == compilation_id)
        .values(last_sequence=CompilationRow.last_sequence + 1)
        .returning(CompilationRow.last_sequence)
        .execution_options(synchronize_session=False)
    )
    assert sequence is not None
    session.add(
        EventRow(
            compilation_id=compilation_id,
            sequence=sequence,
            kind=kind,
            data=data,
            created_at=utc_now(),
        )
    )
    announce(session, topic(compilation_id))


def events_after(session: Session, compilation_id: str, sequence: int) -> list[EventRow]:
    """Events with a larger number, in order."""
    query = select(EventRow).where(
        EventRow.compilation_id == compilation_id, EventRow.sequence > sequence
    )
    return list(session.scalars(query.order_by(EventRow.sequence)))


def topic(compilation_id: str) -> str:
    """The bell that rings when the compilation's stream has grown."""
    return f"compilation:{compilation_id}"
