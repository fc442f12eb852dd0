"""A job's events until it is over, through broken connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from service.client.connection import Connection
from service.client.messages import Event
from service.client.sse import parse_events
from service.contracts.errors import ErrorClass, NnfarmError

_RECONNECT_PAUSE_S = 0.2


def follow(connection: Connection, path: str, is_over: Callable[[], bool]) -> Iterator[Event]:
    """Events from the job's start until it is over.

    A broken connection is taken up again after the last event seen, when the service comes back
    within a minute.

    Args:
        connection: to the service.
        path: of the stream.
        is_over: asks the service whether the job is; raises where the service stays away.
    """
    last_id = ""
    while True:
        try:
            for event in _events(connection, path, last_id):
                last_id = event.id
                yield event
        except NnfarmError as error:
            if error.kind.error_class is not ErrorClass.INFRA:
                raise
            is_over()  # raises where the service stays away
        else:
            # The stream also ends in good order when the service is told to stop.
            if is_over():
                return
        time.sleep(_RECONNECT_PAUSE_S)


def _events(connection: Connection, path: str, last_id: str) -> Iterator[Event]:
    headers = {"Accept": "text/event-stream"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    with connection.stream(path, headers) as response:
        yield from parse_events(response.iter_lines(), last_id)
