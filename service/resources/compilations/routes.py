"""Ask for compilations and follow them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Response
from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.concurrency import run_in_threadpool

from service.authorization import allow_user
from service.components import Components, ComponentsDep, ReadSession, WriteSession
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompilationStatus
from service.pages import Page, PageDep, page_of
from service.resources.compilations import repository, service, stream
from service.resources.compilations.schemas import Compilation, CompilationRequest

router = APIRouter(
    prefix="/v1/compilations", tags=["compilations"], dependencies=[Depends(allow_user)]
)

_EVENT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`progress` (a StageEvent), `status` {status, attempt, error} and `run` "
        "(a RunSummary) events; `id` is a sequence number",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post(
    "",
    status_code=201,
    responses={200: {"model": Compilation, "description": "Built before, or under way already"}},
)
def request_compilation(
    request: CompilationRequest,
    response: Response,
    session: WriteSession,
    components: ComponentsDep,
) -> Compilation:
    """Compile a model for NNAPI feature levels and ABIs, and run the artifacts if asked to.

    The same request as one that has succeeded, or is under way, gives that one; its runs are made
    all the same.
    """
    row, is_new = service.request_compilation(
        session, request, components.settings.compiler_version
    )
    response.status_code = 201 if is_new else 200
    cached = not is_new and row.status is CompilationStatus.SUCCEEDED
    return service.views(session, [row])[0].model_copy(update={"cached": cached})


@router.get("")
def list_compilations(session: ReadSession, page: PageDep) -> Page[Compilation]:
    """All compilations, newest first."""
    return page_of(repository.page(session, page), lambda rows: service.views(session, rows))


@router.get("/{compilation_id}")
def show_compilation(compilation_id: str, session: ReadSession) -> Compilation:
    """One compilation with its artifacts and runs."""
    return service.views(session, [service.require_compilation(session, compilation_id)])[0]


@router.get(
    "/{compilation_id}/events", response_class=EventSourceResponse, responses=_EVENT_RESPONSES
)
async def follow_compilation(
    compilation_id: str,
    components: ComponentsDep,
    last_event_id: Annotated[
        str | None, Header(description="Resume after this event; without it: from the start")
    ] = None,
) -> EventSourceResponse:
    """Server-sent events; the stream ends after the last run is final."""
    after = _sequence(last_event_id)
    await run_in_threadpool(_require, components, compilation_id)
    return EventSourceResponse(
        _messages(components, compilation_id, after), ping=components.settings.event_ping_s
    )


def _require(components: Components, compilation_id: str) -> None:
    with components.database.reading() as session:
        service.require_compilation(session, compilation_id)


async def _messages(
    components: Components, compilation_id: str, after: int
) -> AsyncIterator[JSONServerSentEvent]:
    async for event in stream.follow(components, compilation_id, after):
        yield JSONServerSentEvent(event.data, event=event.kind, id=str(event.sequence))


def _sequence(last_event_id: str | None) -> int:
    if not last_event_id:
        return 0
    if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > 9:
        raise NnfarmError("request.invalid", f"Last-Event-ID {last_event_id!r} is not one of ours.")
    return int(last_event_id)
