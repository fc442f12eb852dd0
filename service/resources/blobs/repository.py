"""Queries on blobs."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.columns import utc_now
from service.resources.blobs.tables import BlobRow
from service.storage.incoming import StagedBlob


def find(session: Session, sha256: str) -> BlobRow | None:
    """The blob's row."""
    return session.get(BlobRow, sha256)


def find_many(session: Session, hashes: Iterable[str]) -> dict[str, BlobRow]:
    """Rows of those hashes that are known, by hash."""
    rows = session.scalars(select(BlobRow).where(BlobRow.sha256.in_(set(hashes))))
    return {row.sha256: row for row in rows}


def add(session: Session, staged: StagedBlob) -> None:
    """Record a stored blob; two senders of the same bytes may both come here."""
    values = {
        "sha256": staged.sha256,
        "crc32": staged.crc32,
        "size_bytes": staged.size_bytes,
        "created_at": utc_now(),
    }
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    session.execute(insert(BlobRow).values(values).on_conflict_do_nothing())
