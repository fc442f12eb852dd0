"""Rules of models."""

from __future__ import annotations

from pathlib import PurePath

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.quantization import ModelOrigin
from service.contracts.tensors import ModelSignature
from service.identifiers import new_id
from service.resources.models import repository
from service.resources.models.tables import ModelRow
from service.storage.incoming import StagedBlob

_MAX_NAME_LETTERS = 200


def add_model(
    session: Session,
    staged: StagedBlob,
    name: str,
    model_format: ModelFormat,
    signature: ModelSignature,
    origin: ModelOrigin | None = None,
) -> tuple[ModelRow, bool]:
    """Keep a model; answers the row and whether it is new. What was uploaded has no origin."""
    row = ModelRow(
        id=new_id("mod"),
        name=name,
        format=model_format,
        sha256=staged.sha256,
        size_bytes=staged.size_bytes,
        signature=signature,
        derived_from=origin,
        created_at=utc_now(),
    )
    if repository.add(session, row):
        return row, True
    existing = repository.find_by_hash(session, staged.sha256)
    assert existing is not None
    existing.derived_from = existing.derived_from or origin
    return existing, False


def require_model(session: Session, model_id: str) -> ModelRow:
    """The model with this id.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.find(session, model_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no model {model_id}.")
    return row


def derived_name(model: ModelRow, suffix: str) -> str:
    """The name of what was made from a model."""
    return f"{model.name[: _MAX_NAME_LETTERS - len(suffix) - 1]}-{suffix}"


def model_name(given: str | None, file_name: str | None) -> str:
    """The name asked for, or the file's own without its ending."""
    name = (given or PurePath((file_name or "").replace("\\", "/")).stem or "model").strip()
    if not 0 < len(name) <= _MAX_NAME_LETTERS or not name.isprintable():
        raise NnfarmError(
            "request.invalid",
            f"A model's name has 1 to {_MAX_NAME_LETTERS} printable letters.",
        )
    return name
