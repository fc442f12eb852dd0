"""Upload and show datasets."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool

from service.authorization import allow_user
from service.components import Components, ComponentsDep, ReadSession
from service.contracts.errors import NnfarmError
from service.pages import Page, PageDep, page_of
from service.resources.blobs import service as blobs
from service.resources.datasets import npz, repository, service
from service.resources.datasets.schemas import Dataset
from service.resources.datasets.tables import DatasetRow
from service.resources.models import service as models
from service.resources.models.routes import ContentHash
from service.storage.incoming import Incoming
from service.storage.multipart import UploadForm, receive_form

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], dependencies=[Depends(allow_user)])

_UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "model_id"],
                    "properties": {
                        "file": {
                            "type": "string",
                            "format": "binary",
                            "description": "A .npz: one array an input, samples stacked on axis "
                            "0, and optional integer `labels`",
                        },
                        "model_id": {"type": "string"},
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
    responses={200: {"model": Dataset, "description": "These bytes were known already"}},
)
async def upload_dataset(
    request: Request,
    response: Response,
    components: ComponentsDep,
    content_hash: ContentHash = None,
) -> Dataset:
    """Upload evaluation inputs of a model; they are checked against its signature."""
    limit_bytes = components.settings.max_dataset_bytes
    with Incoming(components.blobs.staging_dir, limit_bytes, _too_large) as incoming:
        form = await receive_form(request, incoming)
        row, is_new = await run_in_threadpool(_keep, components, incoming, form, content_hash)
    response.status_code = 201 if is_new else 200
    return Dataset.model_validate(row)


def _keep(
    components: Components, incoming: Incoming, form: UploadForm, content_hash: str | None
) -> tuple[DatasetRow, bool]:
    staged = incoming.finish(content_hash)
    model_id = form.fields.get("model_id")
    if not model_id:
        raise NnfarmError("request.invalid", "The form needs the field 'model_id'.")
    with components.database.reading() as session:
        signature = models.require_model(session, model_id).signature
    facts = npz.check_dataset(staged.path, signature, components.settings.max_dataset_bytes)
    components.blobs.put(staged)
    with components.database.writing() as session:
        blobs.record(session, staged)
        return service.add_dataset(session, staged, model_id, facts)


@router.get("")
def list_datasets(session: ReadSession, page: PageDep) -> Page[Dataset]:
    """All datasets, newest first."""
    return page_of(
        repository.page(session, page), lambda rows: [Dataset.model_validate(row) for row in rows]
    )


@router.get("/{dataset_id}")
def show_dataset(dataset_id: str, session: ReadSession) -> Dataset:
    """One dataset."""
    return Dataset.model_validate(service.require_dataset(session, dataset_id))


def _too_large(limit_bytes: int) -> NnfarmError:
    return NnfarmError(
        "dataset.too_large",
        f"A dataset file may have {limit_bytes} bytes at most.",
        limit_bytes=limit_bytes,
    )
