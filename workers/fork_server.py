"""The warm process that compile children are forked from: TVM is imported here, once.

Started by `workers.sandbox` as a program of its own with a cleaned environment, so that neither it
nor a child ever holds a token. It lives as long as the control socket of the worker is open.

Control messages (SOCK_SEQPACKET, JSON): the worker sends `{"start": job, "entry",
"work_dir", "limits"}` with one socket attached, and `{"kill": job}`. To the socket of a job the
server sends `{"pid": n}` when its process runs, and `{"status": wait status, "max_rss_bytes": n}`
when it is over.
"""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from workers.confine import SandboxLimits, confine

MESSAGE_BYTES = 65536
READY = b"ready"
EXIT_MEMORY = 87
"""Exit code of a child that ran into its memory limit inside Python."""
EXIT_UNCONFINED = 88
"""Exit code of a child that could not be confined; no model has been touched."""
EXIT_UNHANDLED = 89
"""Exit code of a child whose entry raised."""

Entry = Callable[[Path], int]


@dataclass
class _Job:
    number: int
    pid: int
    pid_fd: int
    report: socket.socket


class ForkServer:
    """Forks one confined child per job and reports its end.

    Args:
        control: the worker's end is elsewhere; its closing ends the server.
        entries: what children call with their working folder, by the name in their order;
            returns the exit code.
    """

    def __init__(self, control: socket.socket, entries: Mapping[str, Entry]) -> None:
        self._control = control
        self._entries = entries
        self._jobs: dict[int, _Job] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)

    def serve(self) -> None:
        """Works until the worker is gone; then ends all jobs."""
        self._control.send(READY)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._control:
                    self._finish(key.data)
                elif not self._obey():
                    for job in self._jobs.values():
                        kill_group(job.pid)
                    return

    def _obey(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        if not message:
            return False
        order = json.loads(message)
        if "kill" in order:
            if job := self._jobs.get(order["kill"]):
                kill_group(job.pid)
        else:
            self._start(order, socket.socket(fileno=descriptors[0]))
        return True

    def _start(self, order: dict[str, Any], report: socket.socket) -> None:
        pid = os.fork()
        if pid == 0:
            self._close_all()
            report.close()
            entry = self._entries[order["entry"]]
            _run_child(entry, Path(order["work_dir"]), SandboxLimits(**order["limits"]))
        job = _Job(order["start"], pid, os.pidfd_open(pid), report)
        _tell(job, {"pid": pid})
        self._jobs[job.number] = job
        self._selector.register(job.pid_fd, selectors.EVENT_READ, job)

    def _finish(self, job: _Job) -> None:
        self._selector.unregister(job.pid_fd)
        os.close(job.pid_fd)
        del self._jobs[job.number]
        # Before the zombie is reaped its id cannot be anybody else's: now is the time to take
        # along the tools it started.
        kill_group(job.pid)
        _, status, usage = os.wait4(job.pid, 0)
        _tell(job, {"status": status, "max_rss_bytes": usage.ru_maxrss * 1024})
        job.report.close()

    def _close_all(self) -> None:
        """Takes the server's descriptors from a child: it could start and kill jobs with them."""
        self._selector.close()
        self._control.close()
        for job in self._jobs.values():
            os.close(job.pid_fd)
            job.report.close()


def _tell(job: _Job, message: dict[str, int]) -> None:
    with suppress(OSError):  # the worker may be gone; the control socket will say so
        job.report.send(json.dumps(message).encode())


def kill_group(pid: int) -> None:
    """Kills a job's process and the tools it started; they may be gone already."""
    for kill in (os.killpg, os.kill):  # a very young child has no process group yet
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _run_child(entry: Entry, work_dir: Path, limits: SandboxLimits) -> NoReturn:
    code = EXIT_UNCONFINED
    try:
        sentence = confine(work_dir, limits)
        print(sentence, flush=True)
        code = EXIT_UNHANDLED
        code = entry(work_dir)
    except MemoryError:
        code = EXIT_MEMORY
        traceback.print_exc()
    except BaseException:
        traceback.print_exc()
    finally:
        # Not sys.exit: the server's own stack and exit handlers are not this process's.
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


@contextmanager
def _left_out(package: str) -> Iterator[None]:
    """Imports fail for a package inside.

    TVM imports PyTorch wherever it is installed: 190 MB in every child, for the few whose model is
    PyTorch's; those import it themselves.
    """
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]


def main(control_fd: int, modules: Sequence[str]) -> None:
    """Imports `modules`, whose `main(work_dir) -> int` are the entries, and serves."""
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    with _left_out("torch"):
        entries = {module: importlib.import_module(module).main for module in modules}
    ForkServer(control, entries).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
