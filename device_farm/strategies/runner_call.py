"""A call of the runner on a phone: its events as they come, its end as an error of ours or none."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

from device_farm.protocols.device import (
    CancelledError,
    DeviceLostError,
    DeviceProtocol,
    DeviceTimeoutError,
    ShellResult,
    StorageFullError,
    TransferError,
)
from device_farm.strategies.runner_events import RunnerEvents
from service.contracts.errors import NnfarmError

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
"""Names of files and folders that are put on a phone."""

_CODE_BY_EXIT = {3: "run.bad_package", 7: "run.storage_full"}
_SIGNALLED = 128
_LOG_TAIL_CHARS = 16 * 1024
_KILL_TIMEOUT_S = 10.0


class RunFailedError(NnfarmError):
    """A run that failed on the device, with what the runner logged."""

    def __init__(self, code: str, detail: str, log_tail: str) -> None:
        super().__init__(code, detail)
        self.log_tail = log_tail


@contextlib.contextmanager
def device_errors() -> Iterator[None]:
    """A phone's errors as errors of the run.

    Raises:
        NnfarmError: with a `run.*` code.
    """
    try:
        yield
    except DeviceLostError as error:
        raise NnfarmError("run.device_lost", str(error)) from error
    except DeviceTimeoutError as error:
        raise NnfarmError("run.timeout", str(error)) from error
    except StorageFullError as error:
        raise NnfarmError("run.storage_full", str(error)) from error
    except TransferError as error:
        raise NnfarmError("run.failed", str(error)) from error


def call_runner(
    device: DeviceProtocol,
    command: str,
    timeout_s: float,
    cancelled: Callable[[], bool],
    events: RunnerEvents,
) -> ShellResult:
    """Runs a shell command that is the runner; `events` takes what it prints.

    Raises:
        DeviceLostError, DeviceTimeoutError: the phone's.
        CancelledError: `cancelled` turned true.
    """
    try:
        return device.run(command, timeout_s=timeout_s, on_line=events.feed, cancelled=cancelled)
    except (DeviceTimeoutError, CancelledError):
        # A real phone does not end a command because its connection was dropped.
        if events.start is not None:
            with contextlib.suppress(DeviceLostError, DeviceTimeoutError):
                device.run(f"kill -9 {events.start.pid}", timeout_s=_KILL_TIMEOUT_S)
        raise


def log_tail_of(result: ShellResult) -> str:
    """The end of what the runner logged."""
    return result.stderr[-_LOG_TAIL_CHARS:]


def check_exit(result: ShellResult, events: RunnerEvents) -> None:
    """Nothing, where the runner ended well.

    Raises:
        RunFailedError: of its exit code.
    """
    code, log_tail = result.exit_code, log_tail_of(result)
    if code == 0:
        return
    if code > _SIGNALLED:
        detail = f"Signal {code - _SIGNALLED} ended the runner."
        raise RunFailedError("run.crashed", detail, log_tail)
    words = events.error.detail if events.error else log_tail.strip()[-300:]
    detail = f"The runner ended with code {code}: {words or 'it said nothing'}"
    raise RunFailedError(_CODE_BY_EXIT.get(code, "run.failed"), detail, log_tail)


def ended_early(events: RunnerEvents, result: ShellResult) -> RunFailedError:
    """The error of a runner that ended well without the events it should have written."""
    lines = f"; unreadable: {events.bad_lines[0]!r}" if events.bad_lines else ""
    detail = f"The runner ended without all its events{lines}."
    return RunFailedError("run.failed", detail, log_tail_of(result))
