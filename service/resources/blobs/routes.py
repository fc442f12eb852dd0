"""Blobs for the holders of a job or a lease."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from service.authorization import HolderGrant
from service.components import Components, ComponentsDep, ReadSession
from service.contracts.errors import NnfarmError
from service.resources.blobs import service
from service.resources.blobs.tables import BlobRow
from service.storage.incoming import Incoming

router = APIRouter(prefix="/internal/v1/blobs", tags=["blobs"])


def _known_blob(sha256: str, grant: HolderGrant, session: ReadSession) -> BlobRow:  # noqa: ARG001
    return service.require(session, sha256)


KnownBlob = Annotated[BlobRow, Depends(_known_blob)]


@router.get("/{sha256}", response_class=StreamingResponse)
def download_blob(blob: KnownBlob, components: ComponentsDep) -> StreamingResponse:
    """Stream a blob."""
    return StreamingResponse(components.blobs.read(blob.sha256), headers=_headers(blob))


@router.head("/{sha256}")
def describe_blob(blob: KnownBlob) -> Response:
    """Tell whether a blob is there, and its size."""
    return Response(headers=_headers(blob), media_type="application/octet-stream")


@router.put("/{sha256}", status_code=204)
async def upload_blob(
    sha256: str,
    grant: HolderGrant,  # noqa: ARG001
    request: Request,
    components: ComponentsDep,
) -> None:
    """Store a blob under the SHA-256 of its bytes; safe to repeat."""
    service.require_hash(sha256)
    limit_bytes = components.settings.max_blob_bytes
    with Incoming(components.blobs.staging_dir, limit_bytes, _too_large) as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        await run_in_threadpool(_store, components, incoming, sha256)


def _store(components: Components, incoming: Incoming, sha256: str) -> None:
    staged = incoming.finish(expected_sha256=sha256)
    components.blobs.put(staged)
    with components.database.writing() as session:
        service.record(session, staged)


def _headers(blob: BlobRow) -> dict[str, str]:
    return {
        "Content-Type": "application/octet-stream",
        "Content-Length": str(blob.size_bytes),
        "ETag": f'"{blob.sha256}"',
    }


def _too_large(limit_bytes: int) -> NnfarmError:
    return NnfarmError(
        "request.too_large",
        f"A blob may have {limit_bytes} bytes at most.",
        limit_bytes=limit_bytes,
    )
