"""The protocols of a phone, and the errors all drivers raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class DeviceLostError(Exception):
    """The phone does not answer any more."""


class DeviceTimeoutError(Exception):
    """A command did not end in time; its connection has been dropped."""


class CancelledError(Exception):
    """The caller's `cancelled` turned true while a command was running."""


class TransferError(Exception):
    """The phone is there but could not take or give a file."""


class StorageFullError(TransferError):
    """The phone has no room for a file."""


@dataclass(frozen=True)
class ShellResult:
    """What a command left behind."""

    exit_code: int
    stdout: str
    stderr: str


def _never() -> bool:
    return False


class ShellProtocol(Protocol):
    """Commands on the phone."""

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        on_line: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] = _never,
    ) -> ShellResult:
        """Runs one line of shell to its end.

        Args:
            command: as for `sh -c`.
            timeout_s: wall time, the connection included.
            on_line: called with each line of standard output as it comes, without its end.
            cancelled: asked about twice a second.

        Raises:
            DeviceLostError: the phone went away before the command's end.
            DeviceTimeoutError: see `timeout_s`.
            CancelledError: see `cancelled`.
        """


class FileProtocol(Protocol):
    """Files of the phone."""

    def push(self, local: Path, remote: str) -> None:
        """Copies a file to the phone with its mode bits; makes the folders it needs.

        Raises:
            DeviceLostError: the phone went away.
            StorageFullError: it has no room.
            TransferError: it did not take the file for another reason.
        """

    def pull(self, remote: str, local: Path) -> None:
        """Copies a file from the phone.

        Raises:
            DeviceLostError: the phone went away.
            TransferError: it did not give the file.
        """


class PropertiesProtocol(Protocol):
    """What the phone says of itself."""

    def properties(self) -> Mapping[str, str]:
        """All system properties by name.

        Raises:
            DeviceLostError: the phone does not answer.
        """


class RecoverProtocol(Protocol):
    """The rungs of the recovery ladder a driver has."""

    def reconnect(self) -> bool:
        """Makes a new connection to the phone; False when it stays away."""


class DeviceProtocol(ShellProtocol, FileProtocol, PropertiesProtocol, RecoverProtocol, Protocol):
    """Everything the farm asks of a phone."""

    @property
    def serial(self) -> str:
        """The phone's name for life within one farm."""
