"""Queries on models."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.pages import PageRequest, fetch_page
from service.resources.models.tables import ModelRow


def find(session: Session, model_id: str) -> ModelRow | None:
    """The model with this id."""
    return session.get(ModelRow, model_id)


def find_many(session: Session, ids: Iterable[str]) -> dict[str, ModelRow]:
    """Models by id."""
    rows = session.scalars(select(ModelRow).where(ModelRow.id.in_(set(ids))))
    return {row.id: row for row in rows}


def find_by_hash(session: Session, sha256: str) -> ModelRow | None:
    """The model with these bytes."""
    return session.scalar(select(ModelRow).where(ModelRow.sha256 == sha256))


def page(session: Session, request: PageRequest) -> tuple[list[ModelRow], str | None]:
    """One page of models."""
    return fetch_page(session, select(ModelRow), ModelRow.id, request)


def add(session: Session, row: ModelRow) -> bool:
    """Insert the row, unless another request has just stored the same bytes."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True
