"""Ask for tunings and follow them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from sse_starlette import EventSourceResponse

from service.authorization import allow_user
from service.components import ComponentsDep, ReadSession, WriteSession
from service.jobs import lifecycle, repository
from service.jobs.stream import LastEventId, event_responses, event_stream
from service.pages import Page, PageDep, page_of
from service.resources.tunings import service
from service.resources.tunings.kind import TUNING
from service.resources.tunings.schemas import Tuning, TuningRequest

router = APIRouter(prefix="/v1/tunings", tags=["tunings"], dependencies=[Depends(allow_user)])


@router.post(
    "",
    status_code=201,
    responses={200: {"model": Tuning, "description": "Under way already"}},
)
def request_tuning(
    request: TuningRequest,
    response: Response,
    session: WriteSession,
    components: ComponentsDep,
) -> Tuning:
    """Look for faster schedules of a model's CPU kernels, for all later compilations.

    The same request as one that is under way gives that one; after its end, another one goes on
    with what it had no time for.
    """
    row, is_new = service.request_tuning(session, request, components.settings.compiler_version)
    response.status_code = 201 if is_new else 200
    return service.views(session, [row])[0]


@router.get("")
def list_tunings(session: ReadSession, page: PageDep) -> Page[Tuning]:
    """All tunings, newest first."""
    return page_of(
        repository.page(session, TUNING, page), lambda rows: service.views(session, rows)
    )


@router.get("/{tuning_id}")
def show_tuning(tuning_id: str, session: ReadSession) -> Tuning:
    """One tuning with the models it is about."""
    row = lifecycle.require(session, TUNING, tuning_id)
    return service.views(session, [row])[0]


@router.post("/{tuning_id}/cancel")
def cancel_tuning(tuning_id: str, session: WriteSession) -> Tuning:
    """End a tuning that is not over; 409 `request.conflict` when it is. Safe to repeat."""
    row = service.cancel(session, tuning_id)
    return service.views(session, [row])[0]


@router.get("/{tuning_id}/events", response_class=EventSourceResponse, responses=event_responses())
async def follow_tuning(
    tuning_id: str, components: ComponentsDep, last_event_id: LastEventId = None
) -> EventSourceResponse:
    """Server-sent events; the stream ends when the tuning is final."""
    return await event_stream(components, TUNING, tuning_id, last_event_id)
