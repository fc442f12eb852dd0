from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.client.sse import parse_events
from service.contracts.errors import NnfarmError


def test_fields_comments_and_blank_lines() -> None:
    lines = [": ping", "", "id: 7", "event: run", 'data: {"a":', "data: 1}", "", "retry: 5", ""]
    (event,) = parse_events(lines)
    assert (event.id, event.kind, event.data) == ("7", "run", {"a": 1})


def test_an_id_holds_for_later_events() -> None:
    events = list(parse_events(["id: 3", "data: {}", "", "data: {}", ""], last_id="2"))
    assert [event.id for event in events] == ["3", "3"]


def test_an_unfinished_event_is_dropped() -> None:
    assert list(parse_events(["id: 1", "data: {}"])) == []


@pytest.mark.parametrize("data", ["{", "[]", "1"])
def test_data_that_is_no_object_is_refused(data: str) -> None:
    with pytest.raises(NnfarmError, match="no JSON"):
        list(parse_events([f"data: {data}", ""]))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n"))))
def test_any_lines_give_events_or_a_typed_error(lines: list[str]) -> None:
    # Only the typed error may come out; anything else fails the test by itself.
    with contextlib.suppress(NnfarmError):
        assert len(list(parse_events(lines))) <= len(lines)
