"""One child process of the supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

_KILL_AFTER_S = 10.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_STABLE_AFTER_S = 30.0


@dataclass(frozen=True)
class Program:
    """What to run.

    Attributes:
        name: for people and the log file.
        command: program and arguments.
        environment: settings on top of the supervisor's own environment.
        stop_signal: asks it to end, and is what the kernel sends if the supervisor is killed.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM


class SupervisedProcess:
    """Runs a program, and again when it ends by itself.

    Args:
        program: what to run.
        log_path: takes its output; appended to.
        working_dir: the child's current folder.
    """

    def __init__(self, program: Program, log_path: Path, working_dir: Path) -> None:
        self.program = program
        self.log_path = log_path
        self.exit_count = 0
        self._working_dir = working_dir
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._restart_at: float | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the running child."""
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Start the child in a process group of its own: Ctrl-C is for the supervisor."""
        tether = (sys.executable, "-m", "service.local.tether")
        bond = (str(os.getpid()), str(int(self.program.stop_signal)))
        with self.log_path.open("ab") as log:
            self._child = subprocess.Popen(
                (*tether, *bond, *self.program.command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._working_dir,
                env={**os.environ, **self.program.environment},
                start_new_session=True,
            )
        self._started_at = time.monotonic()
        self._restart_at = None

    def watch(self) -> str | None:
        """Start the child again when its time has come; a sentence when there is news."""
        if self._restart_at is not None:
            if time.monotonic() < self._restart_at:
                return None
            self.start()
            return f"{self.program.name}: started again (pid {self.pid})"
        if self._child is None or self._child.poll() is None:
            return None
        return self._note_exit(self._child.returncode)

    def _note_exit(self, code: int) -> str:
        self.exit_count += 1
        # Whatever the dead one left behind must not meet its successor.
        self._kill_group()
        if time.monotonic() - self._started_at > _STABLE_AFTER_S:
            self._pause_s = _FIRST_PAUSE_S
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self._restart_at = time.monotonic() + pause_s
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return f"{self.program.name}: ended {how}, starts again in {pause_s:g} s ({self.log_path})"

    def ask_to_stop(self) -> None:
        """Send the stop signal; `wait_stopped` must follow."""
        self._restart_at = None
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(self.program.stop_signal)

    def wait_stopped(self) -> None:
        """Wait until the child has ended; one that does not in time is killed."""
        if self._child is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(_KILL_AFTER_S)
        self._kill_group()
        self._child.wait()
        self._child = None

    def _kill_group(self) -> None:
        assert self._child is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def log_tail(self, line_count: int = 8) -> str:
        """The last lines of the child's output."""
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-line_count:])
