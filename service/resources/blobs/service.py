"""Rules of blobs: stored first, recorded after, so a recorded blob can be read."""

from __future__ import annotations

import re

from sqlalchemy.orm import Session

from service.contracts.errors import NnfarmError
from service.resources.blobs import repository
from service.resources.blobs.tables import BlobRow
from service.storage.incoming import StagedBlob

_SHA256 = re.compile(r"[0-9a-f]{64}")


def record(session: Session, staged: StagedBlob) -> None:
    """Make a blob that is in the store known."""
    repository.add(session, staged)


def require(session: Session, sha256: str) -> BlobRow:
    """The blob's row.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    require_hash(sha256)
    row = repository.find(session, sha256)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no blob {sha256}.")
    return row


def require_hash(sha256: str) -> None:
    """Refuse anything that is no SHA-256 in lower case: it becomes a file name.

    Raises:
        NnfarmError: ``request.invalid``.
    """
    if not _SHA256.fullmatch(sha256):
        raise NnfarmError("request.invalid", f"{sha256!r} is not 64 lower-case hex digits.")
