"""PostgreSQL and Redis servers of the tests' own, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import redis

from tests.service.farm import eventually, free_port


@contextmanager
def redis_server(executable: str, folder: Path) -> Iterator[str]:
    """Run a redis-server; gives its URL."""
    port = free_port()
    command = [executable, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
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


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a PostgreSQL cluster; gives its URL without a database's name."""
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


def create_database(server: str, name: str | None = None, template: str = "template1") -> str:
    """URL of a new database on a server."""
    name = name or f"test_{uuid4().hex}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return f"{server}/{name}"
