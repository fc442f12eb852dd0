"""The adb server: a process on this machine that holds the connections to phones.

Virtual phones have a private server on a port of its own, so that a person's adb is not disturbed
(and does not disturb measurements); real phones are where USB is, on the usual server.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from device_farm.protocols.device import DeviceLostError

DEFAULT_PORT = 5037
_START_TIMEOUT_S = 20.0
_START_POLL_S = 0.05
_REQUEST_TIMEOUT_S = 20.0


class AdbServerError(Exception):
    """The server cannot be started or does not answer."""


@dataclass(frozen=True)
class AttachedPhone:
    """One line of `adb devices`."""

    serial: str
    state: str

    @property
    def ready(self) -> bool:
        """Whether commands can be sent."""
        return self.state == "device"


def carried_adb() -> Path:
    """The adb program that the adbutils package carries."""
    from adbutils import adb_path  # here, because it imports an imaging library

    return Path(adb_path())


class AdbServer:
    """Requests to one adb server (host:... services), over its socket."""

    def __init__(self, program: Path, port: int = DEFAULT_PORT) -> None:
        self.program = program
        self.port = port

    def open(self, request: str, *, timeout_s: float = _REQUEST_TIMEOUT_S) -> socket.socket:
        """Sends one request on a new connection.

        Returns:
            The connection, right behind the server's OKAY.

        Raises:
            AdbServerError: the server does not answer.
            DeviceLostError: it refused; its words are the message.
        """
        try:
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s)
        except OSError as error:
            raise AdbServerError(f"no adb server on port {self.port}: {error}") from error
        try:
            ask(connection, request)
        except BaseException:
            connection.close()
            raise
        return connection

    def query(self, request: str, *, timeout_s: float = _REQUEST_TIMEOUT_S) -> str:
        """Sends one request and reads its one answer; errors as `open`."""
        with self.open(request, timeout_s=timeout_s) as connection:
            try:
                size = int(read_exactly(connection, 4), 16)
                return read_exactly(connection, size).decode(errors="replace")
            except OSError as error:
                raise AdbServerError(f"adb server: {request}: {error}") from error

    def is_up(self) -> bool:
        """Whether a server answers on the port."""
        try:
            self.query("host:version")
        except AdbServerError:
            return False
        return True

    def devices(self) -> tuple[AttachedPhone, ...]:
        """Every phone the server knows, ready or not."""
        lines = self.query("host:devices").splitlines()
        return tuple(AttachedPhone(*line.split("\t", 1)) for line in lines if "\t" in line)

    def connect(self, serial: str) -> bool:
        """Connects a network phone `host:port`; False when it is not there."""
        answer = self.query(f"host:connect:{serial}")
        return answer.startswith(("connected to", "already connected to"))

    def disconnect(self, serial: str) -> None:
        """Forgets a network phone; one that is not known is fine."""
        with contextlib.suppress(DeviceLostError):
            self.query(f"host:disconnect:{serial}")


@contextlib.contextmanager
def private_server(program: Path, home: Path) -> Iterator[AdbServer]:
    """A server of one's own for virtual phones, as a child process, on a free port.

    Args:
        program: the adb program.
        home: folder for the server's keys and log, apart from the user's.

    Raises:
        AdbServerError: it does not start.
    """
    environment = {
        "HOME": str(home.resolve()),
        "PATH": os.defpath,
        # Only the phones it is told of: no emulators, no USB, nothing from the network.
        "ADB_EMU": "0",
        "ADB_LOCAL_TRANSPORT_MAX_PORT": "0",
        "ADB_USB": "0",
        "ADB_MDNS": "0",
        "ADB_MDNS_AUTO_CONNECT": "",
    }
    home.mkdir(parents=True, exist_ok=True)
    with (
        (home / "server.log").open("wb") as log,
        _child_server(AdbServer(program, _free_port()), environment, log.fileno()) as server,
    ):
        yield server


@contextlib.contextmanager
def shared_server(program: Path, port: int = DEFAULT_PORT) -> Iterator[AdbServer]:
    """The server that has this machine's real phones.

    One that runs already is used and left running; otherwise a child process that ends with us.

    Raises:
        AdbServerError: it does not start.
    """
    server = AdbServer(program, port)
    if server.is_up():
        yield server
        return
    with _child_server(server, None, subprocess.DEVNULL) as started:
        yield started


@contextlib.contextmanager
def _child_server(
    server: AdbServer, environment: dict[str, str] | None, log: int
) -> Iterator[AdbServer]:
    process = subprocess.Popen(
        [str(server.program), "-P", str(server.port), "server", "nodaemon"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_until_up(server, process)
        yield server
    finally:
        process.terminate()
        process.wait()


def ask(connection: socket.socket, request: str) -> None:
    """Sends one length-prefixed request and reads OKAY; errors as `AdbServer.open`."""
    raw = request.encode()
    try:
        connection.sendall(f"{len(raw):04x}".encode() + raw)
        status = read_exactly(connection, 4)
        if status == b"OKAY":
            return
        size = int(read_exactly(connection, 4), 16)
        reason = read_exactly(connection, size).decode(errors="replace")
    except OSError as error:
        raise AdbServerError(f"adb server: {request}: {error}") from error
    raise DeviceLostError(reason)


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes.

    Raises:
        ConnectionResetError: the peer closed before.
        TimeoutError: the socket's time-out passed.
    """
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError("connection closed")
        data += part
    return bytes(data)


def _wait_until_up(server: AdbServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AdbServerError(f"{server.program}: ended with code {process.returncode}")
        if server.is_up():
            return
        time.sleep(_START_POLL_S)
    raise AdbServerError(f"{server.program}: not up in {_START_TIMEOUT_S:g} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
