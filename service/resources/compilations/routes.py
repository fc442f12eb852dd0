"""Ask for compilations and follow them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from sse_starlette import EventSourceResponse

from service.authorization import allow_user
from service.components import ComponentsDep, ReadSession, WriteSession
from service.contracts.jobs import JobStatus
from service.jobs import lifecycle, repository
from service.jobs.stream import LastEventId, event_responses, event_stream
from service.pages import Page, PageDep, page_of
from service.resources.compilations import service
from service.resources.compilations.kind import COMPILATION
from service.resources.compilations.schemas import Compilation, CompilationRequest

router = APIRouter(
    prefix="/v1/compilations", tags=["compilations"], dependencies=[Depends(allow_user)]
)


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
    cached = not is_new and row.status is JobStatus.SUCCEEDED
    return service.views(session, [row])[0].model_copy(update={"cached": cached})


@router.get("")
def list_compilations(session: ReadSession, page: PageDep) -> Page[Compilation]:
    """All compilations, newest first."""
    return page_of(
        repository.page(session, COMPILATION, page), lambda rows: service.views(session, rows)
    )


@router.get("/{compilation_id}")
def show_compilation(compilation_id: str, session: ReadSession) -> Compilation:
    """One compilation with its artifacts and runs."""
    return service.views(session, [lifecycle.require(session, COMPILATION, compilation_id)])[0]


@router.post("/{compilation_id}/cancel")
def cancel_compilation(compilation_id: str, session: WriteSession) -> Compilation:
    """End a compilation that is not over; 409 `request.conflict` when it is. Safe to repeat."""
    row = lifecycle.cancel(session, COMPILATION, compilation_id)
    return service.views(session, [row])[0]


@router.get(
    "/{compilation_id}/events",
    response_class=EventSourceResponse,
    responses=event_responses(", `run` (a RunSummary)"),
)
async def follow_compilation(
    compilation_id: str, components: ComponentsDep, last_event_id: LastEventId = None
) -> EventSourceResponse:
    """Server-sent events; the stream ends after the last run is final."""
    return await event_stream(components, COMPILATION, compilation_id, last_event_id)
