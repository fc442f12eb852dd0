"""Ask for quantizations and follow them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from sse_starlette import EventSourceResponse

from service.authorization import allow_user
from service.components import ComponentsDep, ReadSession, WriteSession
from service.contracts.jobs import JobStatus
from service.jobs import lifecycle, repository
from service.jobs.stream import LastEventId, event_responses, event_stream
from service.pages import Page, PageDep, page_of
from service.resources.quantizations import service
from service.resources.quantizations.kind import QUANTIZATION
from service.resources.quantizations.schemas import Quantization, QuantizationRequest

router = APIRouter(
    prefix="/v1/quantizations", tags=["quantizations"], dependencies=[Depends(allow_user)]
)


@router.post(
    "",
    status_code=201,
    responses={200: {"model": Quantization, "description": "Made before, or under way already"}},
)
def request_quantization(
    request: QuantizationRequest,
    response: Response,
    session: WriteSession,
    components: ComponentsDep,
) -> Quantization:
    """Quantize a float ONNX model; the result is a model of its own.

    The same request as one that has succeeded, or is under way, gives that one.
    """
    row, is_new = service.request_quantization(
        session, request, components.settings.compiler_version
    )
    response.status_code = 201 if is_new else 200
    cached = not is_new and row.status is JobStatus.SUCCEEDED
    return service.views(session, [row])[0].model_copy(update={"cached": cached})


@router.get("")
def list_quantizations(session: ReadSession, page: PageDep) -> Page[Quantization]:
    """All quantizations, newest first."""
    return page_of(
        repository.page(session, QUANTIZATION, page), lambda rows: service.views(session, rows)
    )


@router.get("/{quantization_id}")
def show_quantization(quantization_id: str, session: ReadSession) -> Quantization:
    """One quantization with the models it is about."""
    row = lifecycle.require(session, QUANTIZATION, quantization_id)
    return service.views(session, [row])[0]


@router.post("/{quantization_id}/cancel")
def cancel_quantization(quantization_id: str, session: WriteSession) -> Quantization:
    """End a quantization that is not over; 409 `request.conflict` when it is. Safe to repeat."""
    row = lifecycle.cancel(session, QUANTIZATION, quantization_id)
    return service.views(session, [row])[0]


@router.get(
    "/{quantization_id}/events", response_class=EventSourceResponse, responses=event_responses()
)
async def follow_quantization(
    quantization_id: str, components: ComponentsDep, last_event_id: LastEventId = None
) -> EventSourceResponse:
    """Server-sent events; the stream ends when the quantization is final."""
    return await event_stream(components, QUANTIZATION, quantization_id, last_event_id)
