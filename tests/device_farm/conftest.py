"""Phones for the tests: real virtual phones behind the real adb program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from device_farm.drivers.adb import AdbDevice
from device_farm.drivers.adb_server import AdbServer, carried_adb, private_server
from device_farm.resources.virtual_phones import VirtualPhone

REPOSITORY = Path(__file__).parents[2]
NO_NNAPI = "virtual-no-nnapi-x86_64"

MakePhone = Callable[..., AdbDevice]
MakeVirtualPhone = Callable[..., VirtualPhone]


@pytest.fixture(scope="session")
def adb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbServer]:
    with private_server(carried_adb(), tmp_path_factory.mktemp("adb")) as server:
        yield server


@pytest.fixture
def virtual_phone(tmp_path: Path) -> Iterator[MakeVirtualPhone]:
    """Makes virtual phones (not started) and ends them after the test."""
    with virtual_phones(tmp_path) as make:
        yield make


@pytest.fixture
def make_phone(adb_server: AdbServer, virtual_phone: MakeVirtualPhone) -> MakePhone:
    """Starts a virtual phone of the test's own and connects adb to it."""

    def make(profile: str = NO_NNAPI) -> AdbDevice:
        return connected(adb_server, virtual_phone(profile))

    return make


@pytest.fixture(scope="module")
def phone(adb_server: AdbServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbDevice]:
    """A virtual phone that the module's tests share: each leaves it as it found it."""
    with virtual_phones(tmp_path_factory.mktemp("phones")) as make:
        yield connected(adb_server, make())


@contextmanager
def virtual_phones(folder: Path) -> Iterator[MakeVirtualPhone]:
    phones: list[VirtualPhone] = []

    def make(profile: str = NO_NNAPI) -> VirtualPhone:
        label = f"phone{len(phones)}"
        phone = VirtualPhone(label, profile, folder / label, REPOSITORY / "build" / "simulator")
        phones.append(phone)
        return phone

    yield make
    for phone in phones:
        phone.stop()


def connected(server: AdbServer, phone: VirtualPhone) -> AdbDevice:
    address = phone.start()
    assert server.connect(address)
    return AdbDevice(server, address)
