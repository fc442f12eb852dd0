"""One real stack for the tests of this folder: service, worker, agent, queue, virtual phones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.client import Client
from service.local.stack import Stack, StackOptions
from tests.servers import create_database, postgres_server, redis_server

PROJECT_DIR = Path(__file__).resolve().parents[2]
SIMULATOR = "simulator/linux-x86_64/libneuralnetworks.so"
PHONES = ("virtual-level1-x86_64", "virtual-level4-x86_64")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever takes a running stack is a stack test."""
    for item in items:
        if {"stack", "servers_stack"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.stack)


def require_native_parts() -> None:
    """A missing C++ part fails with the command that makes it; it does not skip."""
    for product in ("runtime/linux-x86_64/bundle.json", SIMULATOR):
        if not (PROJECT_DIR / "build" / product).exists():
            pytest.fail(f"build/{product} is missing: run `make native`")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running stack with two virtual phones."""
    require_native_parts()
    lines: list[str] = []
    options = StackOptions(
        tmp_path_factory.mktemp("stack"),
        host="127.0.0.1",
        port=None,
        virtual_phones=",".join(PHONES),
        usb_phones=False,
    )
    with Stack(options, lines.append) as running:
        running.wait_for_devices(len(PHONES))
        yield running


@pytest.fixture(scope="session")
def servers_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack as many machines have it: on PostgreSQL and Redis servers that run by themselves."""
    require_native_parts()
    executable = shutil.which("redis-server")
    if executable is None:
        pytest.fail("this test needs Debian's Redis: apt-get install redis-server")
    lines: list[str] = []
    with (
        postgres_server() as database,
        redis_server(executable, tmp_path_factory.mktemp("redis")) as queue_url,
        Stack(
            StackOptions(
                tmp_path_factory.mktemp("servers-stack"),
                host="127.0.0.1",
                port=None,
                virtual_phones=",".join(PHONES),
                usb_phones=False,
                database_url=create_database(database),
                redis_url=queue_url,
            ),
            lines.append,
        ) as running,
    ):
        running.wait_for_devices(len(PHONES))
        yield running


@pytest.fixture
def client(stack: Stack) -> Iterator[Client]:
    with Client(stack.url) as opened:
        yield opened
