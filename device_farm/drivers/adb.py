"""The adb driver: a phone behind an adb server.

Commands go over the server's socket, where a lost connection can be told from a failed command;
files go through the adb program, whose transfers are compressed and proven.
"""

from __future__ import annotations

import codecs
import re
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from device_farm.drivers.adb_server import AdbServer, AdbServerError, ask, read_exactly
from device_farm.protocols.device import (
    CancelledError,
    DeviceLostError,
    DeviceTimeoutError,
    ShellResult,
    StorageFullError,
    TransferError,
)

_FRAME_HEADER = struct.Struct("<BI")
_STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = 1, 2, 3, 4
_POLL_S = 0.5
_TRANSFER_TIMEOUT_S = 600.0
_QUERY_TIMEOUT_S = 15.0
_NO_ROOM = "No space left on device"
_PROPERTY_LINE = re.compile(r"^\[(.+?)\]: \[(.*)\]$", re.MULTILINE)


class AdbDevice:
    """One phone, named by its serial. Implements `protocols.device.DeviceProtocol`."""

    def __init__(self, server: AdbServer, serial: str) -> None:
        self._server = server
        self._serial = serial

    @property
    def serial(self) -> str:
        """The phone's adb serial."""
        return self._serial

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        on_line: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ShellResult:
        """Runs one line of shell; see `ShellProtocol.run`."""
        deadline = time.monotonic() + timeout_s
        reader = _ShellReader(on_line)
        with self._open(f"shell,v2,raw:{command}") as connection:
            connection.sendall(_FRAME_HEADER.pack(_CLOSE_STDIN, 0))
            while reader.exit_code is None:
                if cancelled():
                    raise CancelledError(command)
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise DeviceTimeoutError(f"{self._serial}: no end in {timeout_s:g} s")
                connection.settimeout(min(_POLL_S, left_s))
                self._read_some(connection, reader)
        return reader.result()

    def push(self, local: Path, remote: str) -> None:
        """Copies a file to the phone; see `FileProtocol.push`."""
        self._transfer("push", str(local), remote)

    def pull(self, remote: str, local: Path) -> None:
        """Copies a file from the phone; see `FileProtocol.pull`."""
        self._transfer("pull", remote, str(local))

    def properties(self) -> Mapping[str, str]:
        """All system properties; see `PropertiesProtocol.properties`."""
        try:
            result = self.run("getprop", timeout_s=_QUERY_TIMEOUT_S)
        except DeviceTimeoutError as error:
            raise DeviceLostError(str(error)) from error
        return dict(_PROPERTY_LINE.findall(result.stdout))

    def reconnect(self) -> bool:
        """Drops the connection and makes a new one; True when the phone answers again."""
        try:
            if ":" in self._serial:
                self._server.disconnect(self._serial)
                return self._server.connect(self._serial) and self._is_ready()
            self._server.query(f"host-serial:{self._serial}:reconnect")
            return self._is_ready()
        except (DeviceLostError, AdbServerError):
            return False

    def _is_ready(self) -> bool:
        try:
            state = self._server.query(f"host-serial:{self._serial}:get-state")
        except (DeviceLostError, AdbServerError):
            return False
        return state == "device"

    def _open(self, service: str) -> socket.socket:
        try:
            connection = self._server.open(f"host:tport:serial:{self._serial}")
        except AdbServerError as error:
            raise DeviceLostError(str(error)) from error
        try:
            read_exactly(connection, 8)  # the transport's id
            ask(connection, service)
        except (OSError, AdbServerError) as error:
            connection.close()
            raise DeviceLostError(f"{self._serial}: {error}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _read_some(self, connection: socket.socket, reader: _ShellReader) -> None:
        try:
            data = connection.recv(65536)
        except TimeoutError:
            return
        except OSError as error:
            raise DeviceLostError(f"{self._serial}: {error}") from error
        if not data:
            raise DeviceLostError(f"{self._serial}: the connection closed during a command")
        reader.feed(data)

    def _transfer(self, direction: str, source: str, target: str) -> None:
        program = [str(self._server.program), "-P", str(self._server.port), "-s", self._serial]
        try:
            done = subprocess.run(
                [*program, direction, source, target],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TRANSFER_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceLostError(
                f"{self._serial}: {direction} took over {_TRANSFER_TIMEOUT_S:g} s"
            ) from error
        if done.returncode == 0:
            return
        words = (done.stderr + done.stdout).strip()
        if not self._is_ready():
            raise DeviceLostError(f"{self._serial}: {words}")
        error_type = StorageFullError if _NO_ROOM in words else TransferError
        raise error_type(f"{self._serial}: {direction} {source}: {words}")


class _ShellReader:
    """Takes the frames of the shell protocol apart as they come."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self.exit_code: int | None = None
        self._on_line = on_line
        self._raw = bytearray()
        self._stdout: list[str] = []
        self._stderr: list[str] = []
        self._line = ""
        # Characters may be split between frames.
        self._decoders = {
            _STDOUT: codecs.getincrementaldecoder("utf-8")(errors="replace"),
            _STDERR: codecs.getincrementaldecoder("utf-8")(errors="replace"),
        }

    def feed(self, data: bytes) -> None:
        """Takes bytes of the connection."""
        self._raw += data
        while len(self._raw) >= _FRAME_HEADER.size:
            kind, size = _FRAME_HEADER.unpack_from(self._raw)
            end = _FRAME_HEADER.size + size
            if len(self._raw) < end:
                return
            self._take(kind, bytes(self._raw[_FRAME_HEADER.size : end]))
            del self._raw[:end]

    def result(self) -> ShellResult:
        """Everything, once `exit_code` is there."""
        assert self.exit_code is not None, "result() before the exit frame"
        if self._line and self._on_line:
            self._on_line(self._line)
        return ShellResult(self.exit_code, "".join(self._stdout), "".join(self._stderr))

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == _EXIT:
            self.exit_code = payload[0] if payload else 255
        elif kind == _STDOUT:
            text = self._decoders[kind].decode(payload)
            self._stdout.append(text)
            self._give_lines(text)
        elif kind == _STDERR:
            self._stderr.append(self._decoders[kind].decode(payload))

    def _give_lines(self, text: str) -> None:
        if self._on_line is None:
            return
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._on_line(line)
