"""Upload, list and download runtime bundles."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from service.authorization import allow_agent, allow_user_or_agent
from service.components import Components, ComponentsDep, ReadSession
from service.contracts.errors import NnfarmError
from service.pages import Page, PageDep, page_of
from service.resources.blobs import service as blobs
from service.resources.models.routes import ContentHash
from service.resources.runtime_bundles import repository, service
from service.resources.runtime_bundles.archive import read_description
from service.resources.runtime_bundles.schemas import RuntimeBundle
from service.resources.runtime_bundles.tables import RuntimeBundleRow
from service.storage.incoming import Incoming

router = APIRouter(
    prefix="/v1/runtime-bundles",
    tags=["runtime bundles"],
    dependencies=[Depends(allow_user_or_agent)],
)
# Whoever uploads has their code run on every phone: the agents' token, never an open call.
upload_router = APIRouter(
    prefix="/internal/v1/runtime-bundles",
    tags=["runtime bundles"],
    dependencies=[Depends(allow_agent)],
)

_MAX_BUNDLE_BYTES = 64 << 20
_ZIP: dict[str, Any] = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}


@router.get("")
def list_runtime_bundles(session: ReadSession, page: PageDep) -> Page[RuntimeBundle]:
    """All runtime bundles, newest first; of a target the first one counts."""
    return page_of(
        repository.page(session, page),
        lambda rows: [RuntimeBundle.model_validate(row) for row in rows],
    )


@router.get("/{target}")
def show_runtime_bundle(target: str, session: ReadSession) -> RuntimeBundle:
    """The newest runtime bundle of a target."""
    return RuntimeBundle.model_validate(service.require_newest(session, target))


@router.get(
    "/{target}/content",
    response_class=StreamingResponse,
    responses={
        200: {"content": _ZIP},
        304: {"description": "`If-None-Match` names the present `ETag`"},
    },
)
def download_runtime_bundle(
    target: str,
    session: ReadSession,
    components: ComponentsDep,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """The newest runtime bundle of a target as a zip."""
    bundle = service.require_newest(session, target)
    headers = {"ETag": f'"{bundle.sha256}"'}
    if if_none_match == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return StreamingResponse(
        components.blobs.read(bundle.sha256),
        media_type="application/zip",
        headers={
            **headers,
            "Content-Length": str(bundle.size_bytes),
            "Content-Disposition": f'attachment; filename="nnfarm-runtime-{bundle.target}.zip"',
        },
    )


@upload_router.post(
    "",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": _ZIP}},
    responses={200: {"model": RuntimeBundle, "description": "These bytes were known already"}},
)
async def upload_runtime_bundle(
    request: Request,
    response: Response,
    components: ComponentsDep,
    content_hash: ContentHash = None,
) -> RuntimeBundle:
    """Upload the zip of a runtime bundle, its members stored. A new one counts from then on."""
    staging = components.blobs.staging_dir
    with Incoming(staging, _MAX_BUNDLE_BYTES, _too_large) as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        row, is_new = await run_in_threadpool(_keep, components, incoming, content_hash)
    response.status_code = 201 if is_new else 200
    return RuntimeBundle.model_validate(row)


def _keep(
    components: Components, incoming: Incoming, content_hash: str | None
) -> tuple[RuntimeBundleRow, bool]:
    staged = incoming.finish(content_hash)
    description = read_description(staged.path)
    components.blobs.put(staged)
    with components.database.writing() as session:
        blobs.record(session, staged)
        return service.add_bundle(session, staged, description)


def _too_large(limit_bytes: int) -> NnfarmError:
    return NnfarmError(
        "request.too_large",
        f"A runtime bundle may have {limit_bytes} bytes at most.",
        limit_bytes=limit_bytes,
    )
