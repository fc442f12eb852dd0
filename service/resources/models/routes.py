"""Upload and show models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from service.authorization import allow_user
from service.components import Components, ComponentsDep, ReadSession
from service.contracts.errors import NnfarmError
from service.pages import Page, PageDep, page_of
from service.resources.blobs import service as blobs
from service.resources.models import repository, sandbox, service
from service.resources.models.formats import format_of
from service.resources.models.schemas import Model
from service.resources.models.tables import ModelRow
from service.storage.incoming import Incoming
from service.storage.multipart import UploadForm, receive_form

router = APIRouter(prefix="/v1/models", tags=["models"], dependencies=[Depends(allow_user)])

ContentHash = Annotated[
    str | None,
    Header(alias="X-Content-SHA256", description="If given, the bytes are checked against it"),
]

_UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "ONNX, TFLite or PyTorch .pt2",
                        },
                        "name": {"type": "string", "description": "Default: the file's name"},
                    },
                }
            }
        },
    }
}


@router.post(
    "",
    status_code=201,
    openapi_extra=_UPLOAD,
    responses={200: {"model": Model, "description": "These bytes were known already"}},
)
async def upload_model(
    request: Request,
    response: Response,
    components: ComponentsDep,
    content_hash: ContentHash = None,
) -> Model:
    """Upload a model file. It is inspected before it is kept; the same bytes are one model."""
    limit_bytes = components.settings.max_model_bytes
    with Incoming(components.blobs.staging_dir, limit_bytes, _too_large) as incoming:
        form = await receive_form(request, incoming)
        row, is_new = await run_in_threadpool(_keep, components, incoming, form, content_hash)
    response.status_code = 201 if is_new else 200
    return Model.model_validate(row)


def _keep(
    components: Components, incoming: Incoming, form: UploadForm, content_hash: str | None
) -> tuple[ModelRow, bool]:
    staged = incoming.finish(content_hash)
    name = service.model_name(form.fields.get("name"), form.file_name)
    with components.database.reading() as session:
        known = repository.find_by_hash(session, staged.sha256)
    if known is not None:
        return known, False
    signature = sandbox.inspect(staged.path, components.settings)
    model_format = format_of(staged.path)
    components.blobs.put(staged)
    with components.database.writing() as session:
        blobs.record(session, staged)
        return service.add_model(session, staged, name, model_format, signature)


@router.get("")
def list_models(session: ReadSession, page: PageDep) -> Page[Model]:
    """All models, newest first."""
    return page_of(
        repository.page(session, page), lambda rows: [Model.model_validate(row) for row in rows]
    )


@router.get("/{model_id}")
def show_model(model_id: str, session: ReadSession) -> Model:
    """One model."""
    return Model.model_validate(service.require_model(session, model_id))


@router.get("/{model_id}/content", response_class=StreamingResponse)
def download_model(
    model_id: str, session: ReadSession, components: ComponentsDep
) -> StreamingResponse:
    """The file as it was uploaded."""
    row = service.require_model(session, model_id)
    return StreamingResponse(
        components.blobs.read(row.sha256),
        media_type="application/octet-stream",
        headers={"Content-Length": str(row.size_bytes), "ETag": f'"{row.sha256}"'},
    )


def _too_large(limit_bytes: int) -> NnfarmError:
    return NnfarmError(
        "model.too_large",
        f"A model file may have {limit_bytes} bytes at most.",
        limit_bytes=limit_bytes,
    )
