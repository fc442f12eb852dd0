"""Runs one job in a confined child process and says how it ended.

The child is forked from a warm server (`workers.fork_server`), confined (`workers.confine`), and
talks through its folder only (`workers.job_folder`):

- the parent puts the job's input there before it starts the child;
- `events.jsonl`: the child appends one StageEvent a line; `child.log`: all it prints;
- `outcome.json` (a JobOutcome) and `blobs/<sha256>` at a good end, exit code 0;
- `problem.json` (Problem) and another exit code at a bad one.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Generic

from service.contracts.errors import NnfarmError
from service.contracts.jobs import StageEvent
from workers.confine import KEPT_ENVIRONMENT, SandboxLimits
from workers.fork_server import MESSAGE_BYTES, READY, kill_group
from workers.job_folder import JobFolder
from workers.job_kind import JobKind, Outcome
from workers.verdict import Ending, judge

_WARM_UP_TIMEOUT_S = 180.0
_TICK_S = 0.25  # how often events are read and the time limit is checked

logger = logging.getLogger(__name__)


class JobAbandoned(Exception):  # noqa: N818 - not an error: somebody else has the job now
    """The job was given up while its child ran; the child is dead."""


@dataclass(frozen=True)
class SandboxResult(Generic[Outcome]):
    """How a job ended.

    Attributes:
        outcome: what was built, or why not.
        blobs: files of the blobs the outcome names, by SHA-256, checked; empty after an error.
        log_tail: end of the child's output, at most 16 KiB.
    """

    outcome: Outcome | NnfarmError
    blobs: Mapping[str, Path]
    log_tail: str


class Sandbox:
    """A fork server and the jobs in it; safe to use from several threads.

    Args:
        entries: modules whose `main(work_dir: Path) -> int` does a kind of job; imported by the
            server.
        limits: what each job may use.
    """

    def __init__(self, entries: Sequence[str], limits: SandboxLimits) -> None:
        self._entries = tuple(entries)
        self._limits = limits
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._numbers = count(1)

    def start(self) -> None:
        """Starts the server and waits until it has imported the entries; not needed, but warm.

        Raises:
            NnfarmError: `infra.unavailable`, the server did not come up; its output is on this
                process's standard error.
        """
        with self._lock:
            self._live_control()

    def close(self) -> None:
        """Ends the server and with it every running child."""
        with self._lock:
            self._stop()

    def run(
        self,
        kind: JobKind[Any, Outcome],
        work_dir: Path,
        on_event: Callable[[StageEvent], None],
        cancelled: threading.Event,
    ) -> SandboxResult[Outcome]:
        """Runs a job to its end, good or bad.

        Args:
            kind: of the job; its entry is one of the sandbox's.
            work_dir: the job's folder with its input; nothing else may use it.
            on_event: called in this thread for each event of the child.
            cancelled: setting it kills the child.

        Raises:
            JobAbandoned: `cancelled` was set.
        """
        with JobFolder(work_dir, kind) as folder:
            started_s = time.monotonic()
            blobs: Mapping[str, Path] = {}
            outcome: Outcome | NnfarmError
            try:
                ending = self._run_child(kind.entry, work_dir, folder, on_event, cancelled)
                duration_us = round((time.monotonic() - started_s) * 1e6)
                outcome = judge(kind, ending, folder, self._limits)
                # The child's own clock reading is not evidence.
                outcome = outcome.model_copy(update={"child_duration_us": duration_us})
                blobs = folder.checked_blobs(outcome)
            except NnfarmError as error:
                outcome = error
            return SandboxResult(outcome, blobs, folder.log_tail())

    def _run_child(
        self,
        entry: str,
        work_dir: Path,
        folder: JobFolder[Outcome],
        on_event: Callable[[StageEvent], None],
        cancelled: threading.Event,
    ) -> Ending:
        def pass_events_on() -> None:
            for event in folder.new_events():
                on_event(event)

        number, report = self._start_child(entry, work_dir)
        deadline_s = time.monotonic() + self._limits.wall_s
        killed_for: str | None = None
        pid: int | None = None
        end: dict[str, int] = {}
        with report:
            while not end:
                if select.select([report], [], [], _TICK_S)[0]:
                    end = _receive(report, pid)
                    pid = end.pop("pid", pid)
                pass_events_on()
                if killed_for is None and (cancelled.is_set() or time.monotonic() > deadline_s):
                    killed_for = "cancelled" if cancelled.is_set() else "time"
                    self._send({"kill": number})
        pass_events_on()
        if cancelled.is_set():
            raise JobAbandoned
        logger.info("The child used at most %d MiB", end["max_rss_bytes"] >> 20)
        return Ending(end["status"], killed_for == "time")

    def _start_child(self, entry: str, work_dir: Path) -> tuple[int, socket.socket]:
        number = next(self._numbers)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder, limits = str(work_dir.resolve()), asdict(self._limits)
        start = {"start": number, "entry": entry, "work_dir": folder, "limits": limits}
        order = json.dumps(start).encode()
        with self._lock, theirs:
            try:
                self._send_start(order, theirs)
            except OSError as error:
                # It died unnoticed since the last job; this one has not begun, so nothing is lost.
                logger.error("The fork server takes no jobs (%s); starting it again", error)
                self._stop()
                self._send_start(order, theirs)
        return number, ours

    def _send_start(self, order: bytes, report: socket.socket) -> None:
        socket.send_fds(self._live_control(), [order], [report.fileno()])

    def _send(self, order: dict[str, int]) -> None:
        with self._lock:
            if self._control is None:
                return  # closed: its children are dead
            try:
                self._control.send(json.dumps(order).encode())
            except OSError as error:
                # A dead server's children die with it, and the job's socket says so.
                logger.warning("The fork server does not take orders: %s", error)

    def _live_control(self) -> socket.socket:
        if self._server is not None and self._server.poll() is not None:
            logger.error("The fork server ended with %s; starting it again", self._server.poll())
            self._stop()
        if self._control is None:
            self._control = self._launch()
        return self._control

    def _launch(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "workers.fork_server", str(theirs.fileno()), *self._entries],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        ours.settimeout(_WARM_UP_TIMEOUT_S)
        try:
            ready = ours.recv(MESSAGE_BYTES)
        except TimeoutError:
            ready = b""
        if ready != READY:
            ours.close()
            self._stop()
            names = " or ".join(self._entries)
            raise NnfarmError(
                "infra.unavailable", f"The fork server could not import {names}; see the log."
            )
        ours.settimeout(None)
        return ours

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None


def _receive(report: socket.socket, pid: int | None) -> dict[str, int]:
    message = report.recv(MESSAGE_BYTES)
    if message:
        body: dict[str, int] = json.loads(message)
        return body
    if pid is not None:
        # The kernel has killed the job's process with its server, but not the tools it started.
        kill_group(pid)
    raise NnfarmError("infra.worker_lost", "The fork server went away during the job.")
