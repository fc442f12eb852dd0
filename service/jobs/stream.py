"""A job's events as they happen, from any point on, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header
from sse_starlette import EventSourceResponse, JSONServerSentEvent
from starlette.concurrency import run_in_threadpool

from service.bell import AsyncListener
from service.components import Components
from service.contracts.errors import NnfarmError
from service.jobs import lifecycle, repository
from service.jobs.kind import FINAL, JobKind, Row
from service.jobs.tables import EventRow

_RECHECK_S = 1.0  # another process of the service may have written the event

LastEventId = Annotated[
    str | None, Header(description="Resume after this event; without it: from the start")
]


def event_responses(others: str = "") -> dict[int | str, dict[str, Any]]:
    """The stream in the API's description; `others` names events that only one kind has."""
    names = "`progress` (a StageEvent), `status` {status, attempt, error}" + others
    return {
        200: {
            "description": f"{names}; `id` is a sequence number",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }


async def event_stream(
    components: Components, kind: JobKind[Row], job_id: str, last_event_id: str | None
) -> EventSourceResponse:
    """The answer that carries a job's events; it ends when nothing more will be said.

    Raises:
        NnfarmError: ``request.not_found``, or ``request.invalid`` for an id of nobody's.
    """
    after = _sequence(last_event_id)
    await run_in_threadpool(_require, components, kind, job_id)
    return EventSourceResponse(
        _messages(components, kind, job_id, after), ping=components.settings.event_ping_s
    )


async def _messages(
    components: Components, kind: JobKind[Row], job_id: str, after: int
) -> AsyncIterator[JSONServerSentEvent]:
    async for event in follow(components, kind, job_id, after):
        yield JSONServerSentEvent(event.data, event=event.kind, id=str(event.sequence))


async def follow(
    components: Components, kind: JobKind[Row], job_id: str, after: int
) -> AsyncIterator[EventRow]:
    """Events with a number larger than `after`; ends when the job will say nothing more.

    Args:
        components: of the service.
        kind: of the job.
        job_id: an existing job.
        after: the last sequence number the client has; 0 for all.
    """
    listener = AsyncListener()
    with components.bell.subscribed(repository.topic(job_id), listener.notify):
        while True:
            listener.reset()
            events, is_over = await run_in_threadpool(_look, components, kind, job_id, after)
            for event in events:
                after = event.sequence
                yield event
            if is_over:
                return
            await listener.wait(_RECHECK_S)


def _look(
    components: Components, kind: JobKind[Row], job_id: str, after: int
) -> tuple[list[EventRow], bool]:
    with components.database.reading() as session:
        # In this order: what ends the stream is written together with its event, so nothing
        # can be missing from events read after the end was seen.
        row = lifecycle.require(session, kind, job_id)
        is_over = row.status in FINAL and not kind.has_loose_ends(session, row)
        return repository.events_after(session, job_id, after), is_over


def _require(components: Components, kind: JobKind[Row], job_id: str) -> None:
    with components.database.reading() as session:
        lifecycle.require(session, kind, job_id)


def _sequence(last_event_id: str | None) -> int:
    if not last_event_id:
        return 0
    if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > 9:
        raise NnfarmError("request.invalid", f"Last-Event-ID {last_event_id!r} is not one of ours.")
    return int(last_event_id)
