"""Rules of artifacts: what a worker may deliver, and what can be fetched of it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.artifacts import Manifest, Part, PartRole
from service.contracts.errors import NnfarmError
from service.contracts.jobs import BuiltArtifact
from service.identifiers import new_id
from service.resources.artifacts import repository
from service.resources.artifacts.package import MANIFEST_NAME, Package
from service.resources.artifacts.tables import ArtifactRow
from service.resources.blobs import repository as blobs

_PART_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def require_artifact(session: Session, artifact_id: str) -> ArtifactRow:
    """The artifact with this id.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.find(session, artifact_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no artifact {artifact_id}.")
    return row


def add_artifacts(
    session: Session, compilation_id: str, model_sha256: str, built: Iterable[BuiltArtifact]
) -> list[ArtifactRow]:
    """Keep what a worker built, after checking that every part of it has been uploaded.

    Raises:
        NnfarmError: ``request.invalid``, or ``compile.limit_exceeded`` for a huge package.
    """
    rows = []
    for item in built:
        _check_manifest(item, model_sha256)
        package = package_of(session, item.manifest)
        row = ArtifactRow(
            id=new_id("art"),
            compilation_id=compilation_id,
            feature_level=item.target.feature_level,
            abi=item.target.abi,
            manifest=item.manifest,
            size_bytes=package.size_bytes,
            created_at=utc_now(),
        )
        session.add(row)
        rows.append(row)
    session.flush()
    return rows


def package_of(session: Session, manifest: Manifest) -> Package:
    """The package of a manifest.

    Raises:
        NnfarmError: ``request.invalid`` when a part is not stored, or of another size.
    """
    known = blobs.find_many(session, (part.sha256 for part in manifest.parts))
    for part in manifest.parts:
        blob = known.get(part.sha256)
        if blob is None or blob.size_bytes != part.size_bytes:
            state = "not stored" if blob is None else f"of {blob.size_bytes} bytes"
            raise NnfarmError(
                "request.invalid",
                f"Part {part.path} ({part.sha256}, {part.size_bytes} bytes) is {state}.",
            )
    return Package(manifest, known)


def find_part(artifact: ArtifactRow, path: str) -> Part:
    """A part by its path in the package.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    for part in artifact.manifest.parts:
        if part.path == path:
            return part
    raise NnfarmError("request.not_found", f"Artifact {artifact.id} has no part {path!r}.")


def find_report(artifact: ArtifactRow) -> Part:
    """The part that explains where each operation runs.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    for part in artifact.manifest.parts:
        if part.role is PartRole.REPORT:
            return part
    raise NnfarmError("request.not_found", f"Artifact {artifact.id} has no report.")


def _check_manifest(built: BuiltArtifact, model_sha256: str) -> None:
    manifest = built.manifest
    if (manifest.feature_level, manifest.abi) != (built.target.feature_level, built.target.abi):
        raise NnfarmError("request.invalid", "A manifest names another target than its artifact.")
    if manifest.model_sha256 != model_sha256:
        raise NnfarmError("request.invalid", "A manifest names another model than its job.")
    paths = [part.path for part in manifest.parts]
    if len(set(paths)) != len(paths):
        raise NnfarmError("request.invalid", "A manifest names a part twice.")
    for path in paths:
        if path == MANIFEST_NAME or not _PART_PATH.fullmatch(path):
            raise NnfarmError("request.invalid", f"{path!r} is no name for a part.")
