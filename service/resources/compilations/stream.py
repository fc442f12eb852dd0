"""A compilation's events as they happen, from any point on."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from service.bell import AsyncListener
from service.components import Components
from service.resources.compilations import repository, service
from service.resources.compilations.tables import EventRow

_RECHECK_S = 1.0  # another process of the service may have written the event


async def follow(
    components: Components, compilation_id: str, after: int
) -> AsyncIterator[EventRow]:
    """Events with a number larger than `after`; ends when the compilation and its runs are final.

    Args:
        components: of the service.
        compilation_id: an existing compilation.
        after: the last sequence number the client has; 0 for all.
    """
    listener = AsyncListener()
    with components.bell.subscribed(repository.topic(compilation_id), listener.notify):
        while True:
            listener.reset()
            events, is_over = await run_in_threadpool(_look, components, compilation_id, after)
            for event in events:
                after = event.sequence
                yield event
            if is_over:
                return
            await listener.wait(_RECHECK_S)


def _look(components: Components, compilation_id: str, after: int) -> tuple[list[EventRow], bool]:
    with components.database.reading() as session:
        # In this order: what ends the stream is written together with its event, so nothing
        # can be missing from events read after the end was seen.
        is_over = service.is_over(session, compilation_id)
        return repository.events_after(session, compilation_id, after), is_over
