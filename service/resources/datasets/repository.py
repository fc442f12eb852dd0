"""Queries on datasets."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.pages import PageRequest, fetch_page
from service.resources.datasets.tables import DatasetRow


def find(session: Session, dataset_id: str) -> DatasetRow | None:
    """The dataset with this id."""
    return session.get(DatasetRow, dataset_id)


def find_by_hash(session: Session, model_id: str, sha256: str) -> DatasetRow | None:
    """The dataset of this model with these bytes."""
    query = select(DatasetRow).where(DatasetRow.model_id == model_id, DatasetRow.sha256 == sha256)
    return session.scalar(query)


def page(session: Session, request: PageRequest) -> tuple[list[DatasetRow], str | None]:
    """One page of datasets."""
    return fetch_page(session, select(DatasetRow), DatasetRow.id, request)


def add(session: Session, row: DatasetRow) -> bool:
    """Insert the row, unless another request has just stored the same bytes."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True
