"""Queries on runtime bundles."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.pages import PageRequest, fetch_page
from service.resources.runtime_bundles.tables import RuntimeBundleRow


def find_by_hash(session: Session, sha256: str) -> RuntimeBundleRow | None:
    """The bundle with these bytes."""
    return session.scalar(select(RuntimeBundleRow).where(RuntimeBundleRow.sha256 == sha256))


def newest(session: Session, target: str) -> RuntimeBundleRow | None:
    """The bundle of a target that counts."""
    query = select(RuntimeBundleRow).where(RuntimeBundleRow.target == target)
    return session.scalar(query.order_by(RuntimeBundleRow.id.desc()).limit(1))


def page(session: Session, request: PageRequest) -> tuple[list[RuntimeBundleRow], str | None]:
    """One page of bundles."""
    return fetch_page(session, select(RuntimeBundleRow), RuntimeBundleRow.id, request)


def add(session: Session, row: RuntimeBundleRow) -> bool:
    """Insert the row, unless another request has just stored the same bytes."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True
