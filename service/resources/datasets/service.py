"""Rules of datasets."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.errors import NnfarmError
from service.identifiers import new_id
from service.resources.datasets import repository
from service.resources.datasets.npz import DatasetFacts
from service.resources.datasets.tables import DatasetRow
from service.storage.incoming import StagedBlob


def add_dataset(
    session: Session, staged: StagedBlob, model_id: str, facts: DatasetFacts
) -> tuple[DatasetRow, bool]:
    """Keep a dataset; answers the row and whether it is new."""
    row = DatasetRow(
        id=new_id("dat"),
        model_id=model_id,
        sha256=staged.sha256,
        size_bytes=staged.size_bytes,
        sample_count=facts.sample_count,
        has_labels=facts.has_labels,
        created_at=utc_now(),
    )
    if repository.add(session, row):
        return row, True
    existing = repository.find_by_hash(session, model_id, staged.sha256)
    assert existing is not None
    return existing, False


def share(session: Session, dataset: DatasetRow, model_id: str) -> DatasetRow:
    """The same samples for a model with the same inputs."""
    row = DatasetRow(
        id=new_id("dat"),
        model_id=model_id,
        sha256=dataset.sha256,
        size_bytes=dataset.size_bytes,
        sample_count=dataset.sample_count,
        has_labels=dataset.has_labels,
        created_at=utc_now(),
    )
    if repository.add(session, row):
        return row
    existing = repository.find_by_hash(session, model_id, dataset.sha256)
    assert existing is not None
    return existing


def require_dataset_of(session: Session, dataset_id: str, model_id: str) -> DatasetRow:
    """The dataset with this id, which was checked against this model.

    Raises:
        NnfarmError: ``request.not_found``, ``dataset.mismatch``.
    """
    dataset = require_dataset(session, dataset_id)
    if dataset.model_id != model_id:
        raise NnfarmError(
            "dataset.mismatch",
            f"Dataset {dataset.id} was checked against model {dataset.model_id}, not {model_id}.",
        )
    return dataset


def require_dataset(session: Session, dataset_id: str) -> DatasetRow:
    """The dataset with this id.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.find(session, dataset_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no dataset {dataset_id}.")
    return row
