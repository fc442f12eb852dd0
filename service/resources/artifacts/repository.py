"""Queries on artifacts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.resources.artifacts.tables import ArtifactRow


def find(session: Session, artifact_id: str) -> ArtifactRow | None:
    """The artifact with this id."""
    return session.get(ArtifactRow, artifact_id)


def of_compilations(session: Session, ids: Iterable[str]) -> dict[str, list[ArtifactRow]]:
    """Artifacts by compilation, ordered by ABI and level."""
    query = select(ArtifactRow).where(ArtifactRow.compilation_id.in_(set(ids)))
    found: defaultdict[str, list[ArtifactRow]] = defaultdict(list)
    for row in session.scalars(query.order_by(ArtifactRow.abi, ArtifactRow.feature_level)):
        found[row.compilation_id].append(row)
    return found
