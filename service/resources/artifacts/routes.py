"""Artifacts, their packages, reports and parts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Response
from fastapi.responses import StreamingResponse

from service.authorization import allow_user
from service.components import ComponentsDep, ReadSession
from service.contracts.artifacts import ExplanationReport, Part
from service.resources.artifacts import service
from service.resources.artifacts.schemas import Artifact

router = APIRouter(prefix="/v1/artifacts", tags=["artifacts"], dependencies=[Depends(allow_user)])

IfNoneMatch = Annotated[str | None, Header()]

_ZIP_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}},
    304: {"description": "`If-None-Match` names the present `ETag`"},
}
_PART_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    },
    304: {"description": "`If-None-Match` names the present `ETag`"},
}


@router.get("/{artifact_id}")
def show_artifact(artifact_id: str, session: ReadSession) -> Artifact:
    """One artifact with its manifest."""
    return Artifact.model_validate(service.require_artifact(session, artifact_id))


@router.get("/{artifact_id}/package", response_class=StreamingResponse, responses=_ZIP_RESPONSES)
def download_package(
    artifact_id: str,
    session: ReadSession,
    components: ComponentsDep,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The package as a zip, put together while it is sent; always the same bytes."""
    artifact = service.require_artifact(session, artifact_id)
    package = service.package_of(session, artifact.manifest)
    headers = {"ETag": package.etag}
    if _matches(if_none_match, package.etag):
        return Response(status_code=304, headers=headers)
    name = f"{artifact_id}-level{artifact.feature_level}-{artifact.abi}.zip"
    return StreamingResponse(
        package.stream(components.blobs.read),
        media_type="application/zip",
        headers={
            **headers,
            "Content-Length": str(package.size_bytes),
            "Content-Disposition": f'attachment; filename="{name}"',
        },
    )


@router.get("/{artifact_id}/report")
def show_report(
    artifact_id: str, session: ReadSession, components: ComponentsDep
) -> ExplanationReport:
    """Where each operation runs, and why."""
    part = service.find_report(service.require_artifact(session, artifact_id))
    return ExplanationReport.model_validate_json(b"".join(components.blobs.read(part.sha256)))


@router.get(
    "/{artifact_id}/parts/{path}", response_class=StreamingResponse, responses=_PART_RESPONSES
)
def download_part(
    artifact_id: str,
    path: str,
    session: ReadSession,
    components: ComponentsDep,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """One part of the package."""
    part = service.find_part(service.require_artifact(session, artifact_id), path)
    if _matches(if_none_match, _etag(part)):
        return Response(status_code=304, headers={"ETag": _etag(part)})
    return StreamingResponse(
        components.blobs.read(part.sha256),
        media_type="application/octet-stream",
        headers={"ETag": _etag(part), "Content-Length": str(part.size_bytes)},
    )


def _etag(part: Part) -> str:
    return f'"{part.sha256}"'


def _matches(if_none_match: str | None, etag: str) -> bool:
    return if_none_match is not None and etag in (tag.strip() for tag in if_none_match.split(","))
