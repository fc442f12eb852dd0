"""The same programs as on many machines: PostgreSQL and Redis are servers of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from service.client import Client
from service.client.messages import Event
from service.local.stack import Stack
from tests.stack.digits import finish, is_compiling, is_running, kill_in_the_middle, request_digits

pytestmark = [pytest.mark.postgres, pytest.mark.redis]


@pytest.fixture
def servers_client(servers_stack: Stack) -> Iterator[Client]:
    with Client(servers_stack.url) as opened:
        yield opened


def test_digits_on_postgresql_and_redis(servers_stack: Stack, servers_client: Client) -> None:
    assert "queue" not in servers_stack.processes, "the stack uses the server it was given"
    assert not (servers_stack.data_dir / "nnfarm.db").exists()
    results = finish(servers_client, request_digits(servers_client))
    assert [result.artifact.feature_level for result in results] == [1, 4]
    for result in results:
        assert result.run is not None
        assert result.run.measurement is not None
        assert result.run.measurement.accuracy.top1 == 0.985
    assert request_digits(servers_client).cached


@pytest.mark.parametrize(
    ("victim", "moment"),
    [("worker", is_compiling), ("service", is_compiling), ("agent", is_running)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_kill_9_in_the_middle_on_postgresql(
    servers_stack: Stack, servers_client: Client, victim: str, moment: Callable[[Event], bool]
) -> None:
    results = kill_in_the_middle(servers_stack, servers_client, victim, moment)
    assert [result.artifact.feature_level for result in results] == [1, 4]
