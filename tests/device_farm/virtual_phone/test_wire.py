"""The transport protocol itself, spoken byte by byte: old hosts, broken hosts, hosts that leave."""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from device_farm.virtual_phone.wire import VERSION, VERSION_CHECKSUM, Command, checksum
from tests.device_farm.conftest import virtual_phones

HEADER = struct.Struct("<6I")


class Host:
    """A host that does exactly what it is told."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)

    def send(
        self, command: int, arg0: int, arg1: int, payload: bytes = b"", check: int | None = None
    ) -> None:
        total = checksum(payload) if check is None else check
        header = HEADER.pack(command, arg0, arg1, len(payload), total, command ^ 0xFFFFFFFF)
        self.socket.sendall(header + payload)

    def receive(self) -> tuple[int, int, int, bytes, int]:
        command, arg0, arg1, size, check, _ = HEADER.unpack(self.exactly(HEADER.size))
        return command, arg0, arg1, self.exactly(size), check

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def connect(self, version: int = VERSION, max_payload: int = 4096) -> bytes:
        self.send(Command.CNXN, version, max_payload, b"host::\0")
        command, _, _, banner, _ = self.receive()
        assert command == Command.CNXN
        return banner

    def closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with virtual_phones(tmp_path_factory.mktemp("phones")) as make:
        yield make().start()


@pytest.fixture
def host(address: str) -> Iterator[Host]:
    made = Host(address)
    yield made
    made.socket.close()


def test_an_old_host_gets_checksums(host: Host) -> None:
    assert host.connect(VERSION_CHECKSUM).startswith(b"device::ro.product.name=virtual-no-nnapi")
    host.send(Command.OPEN, 5, 0, b"shell:echo hello\0")
    assert host.receive()[0] == Command.OKAY
    command, local, remote, payload, check = host.receive()
    assert (command, remote, payload, check) == (Command.WRTE, 5, b"hello\n", checksum(b"hello\n"))
    host.send(Command.OKAY, 5, local)
    assert host.receive()[0] == Command.CLSE


def test_a_new_host_gets_and_needs_none(host: Host) -> None:
    host.connect()
    host.send(Command.OPEN, 5, 0, b"shell:echo hello\0", check=0)
    assert host.receive()[0] == Command.OKAY
    assert host.receive()[3:] == (b"hello\n", 0)


def test_nothing_is_written_before_the_okay_and_payloads_fit(host: Host) -> None:
    host.connect(max_payload=4096)
    host.send(Command.OPEN, 5, 0, b"shell:head -c 10000 /dev/zero\0")
    assert host.receive()[0] == Command.OKAY
    got = 0
    while True:
        command, local, _, payload, _ = host.receive()
        if command == Command.CLSE:
            break
        assert len(payload) <= 4096
        got += len(payload)
        host.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            host.socket.recv(1)
        host.socket.settimeout(10)
        host.send(Command.OKAY, 5, local)
    assert got == 10000


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n".ljust(24),
        HEADER.pack(Command.OPEN, 1, 0, 0, 0, Command.OPEN ^ 0xFFFFFFFF),
        HEADER.pack(Command.CNXN, VERSION, 4096, 0xFFFFFFFF, 0, Command.CNXN ^ 0xFFFFFFFF),
        HEADER.pack(Command.CNXN, VERSION, 4096, 0, 0, 12345),
        HEADER.pack(Command.CNXN, 1, 4096, 0, 0, Command.CNXN ^ 0xFFFFFFFF),
    ],
    ids=["no adb", "no CNXN first", "huge payload", "bad magic", "ancient version"],
)
def test_a_broken_hello_ends_the_connection_only(host: Host, address: str, raw: bytes) -> None:
    host.socket.sendall(raw)
    assert host.closed()
    after = Host(address)
    after.connect()
    after.socket.close()


def test_a_wrong_checksum_ends_an_old_hosts_connection(host: Host) -> None:
    host.connect(VERSION_CHECKSUM)
    host.send(Command.OPEN, 5, 0, b"shell:echo hello\0", check=1)
    assert host.closed()


def test_data_without_waiting_for_okay_ends_the_connection(host: Host) -> None:
    host.connect()
    host.send(Command.OPEN, 5, 0, b"shell:sleep 60\0")
    local = host.receive()[1]
    # The command never reads: the daemon takes what a pipe holds, then must not be flooded.

    def flood() -> None:
        for _ in range(1000):
            host.send(Command.WRTE, 5, local, b"x" * 4096)
        host.exactly(24 * 1000)

    with pytest.raises((EOFError, ConnectionError)):
        flood()


def test_a_host_that_leaves_takes_its_commands_with_it(host: Host) -> None:
    host.connect()
    host.send(Command.OPEN, 5, 0, b"shell:sleep 600 & echo $!; wait\0")
    assert host.receive()[0] == Command.OKAY
    pid = int(host.receive()[3])
    os.kill(pid, 0)
    # A pidfd becomes readable when the process ends: no polling by time.
    process = os.pidfd_open(pid)
    host.socket.close()
    assert select.select([process], [], [], 10)[0]
    os.close(process)


def test_a_stream_that_is_closed_kills_its_command_only(host: Host) -> None:
    host.connect()
    host.send(Command.OPEN, 5, 0, b"shell:echo $$; sleep 600\0")
    local = host.receive()[1]
    pid = int(host.receive()[3])
    host.send(Command.CLSE, 5, local)
    assert host.receive()[0] == Command.CLSE
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    host.send(Command.OPEN, 6, 0, b"shell:echo next\0")
    assert host.receive()[0] == Command.OKAY
    assert host.receive()[3] == b"next\n"
