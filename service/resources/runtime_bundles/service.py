"""Rules of runtime bundles."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.errors import NnfarmError
from service.contracts.runtime_bundles import RuntimeBundleDescription
from service.identifiers import new_id
from service.resources.runtime_bundles import repository
from service.resources.runtime_bundles.tables import RuntimeBundleRow
from service.storage.incoming import StagedBlob


def add_bundle(
    session: Session, staged: StagedBlob, description: RuntimeBundleDescription
) -> tuple[RuntimeBundleRow, bool]:
    """Keep a bundle; answers the row and whether it is new."""
    row = RuntimeBundleRow(
        id=new_id("rtb"),
        target=description.target,
        sha256=staged.sha256,
        size_bytes=staged.size_bytes,
        description=description,
        created_at=utc_now(),
    )
    if repository.add(session, row):
        return row, True
    existing = repository.find_by_hash(session, staged.sha256)
    assert existing is not None
    return existing, False


def require_newest(session: Session, target: str) -> RuntimeBundleRow:
    """The bundle of a target that counts.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.newest(session, target)
    if row is None:
        raise NnfarmError(
            "request.not_found",
            f"There is no runtime bundle for {target!r}: see nnfarm runtime upload.",
        )
    return row
