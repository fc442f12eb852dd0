"""Server-sent events: lines to events (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from service.client.messages import Event
from service.contracts.errors import NnfarmError


def parse_events(lines: Iterable[str], last_id: str = "") -> Iterator[Event]:
    """Events in the order of their lines; an unfinished last one is dropped, as the rule says.

    Args:
        lines: the stream's lines without their ends.
        last_id: the id events inherit until the stream names one.

    Raises:
        NnfarmError: `bug.internal` where an event's data is no JSON object.
    """
    kind, data = "", list[str]()
    for line in lines:
        if not line:
            if data:
                yield _event(last_id, kind or "message", "\n".join(data))
            kind, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value
        # A line that begins with a colon has an empty field name: a comment, the keep-alive ping.


def _event(event_id: str, kind: str, data: str) -> Event:
    try:
        content = json.loads(data)
    except json.JSONDecodeError as error:
        raise NnfarmError(
            "bug.internal", f"event {event_id}: the service sent no JSON: {error}"
        ) from error
    if not isinstance(content, dict):
        raise NnfarmError("bug.internal", f"event {event_id}: the service sent no JSON object")
    return Event(id=event_id, kind=kind, data=content)
