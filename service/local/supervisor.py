"""Keeps a list of programs running until it is told to stop."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from service.contracts.errors import NnfarmError
from service.local.process import Program, SupervisedProcess

Say = Callable[[str], None]

_WATCH_INTERVAL_S = 0.2


class DataDirLock:
    """Holds a data folder for one supervisor; the kernel lets go when the process ends."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise NnfarmError(
                "request.conflict",
                f"another supervisor (pid {holder}) uses {path.parent}; stop it, or choose another "
                "folder with NNFARM_DATA_DIR",
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Let the next one in."""
        self._file.close()


class Supervisor:
    """Starts programs in order, restarts what dies, stops all in reverse order.

    Args:
        log_dir: one log file a program.
        working_dir: current folder of the programs.
        say: takes one line of news at a time, from any thread.
    """

    def __init__(self, log_dir: Path, working_dir: Path, say: Say) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        self._log_dir = log_dir
        self._working_dir = working_dir
        self._say = say
        self._processes: list[SupervisedProcess] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="supervisor")

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, program: Program) -> SupervisedProcess:
        """Start a program and keep it running from now on."""
        log_path = self._log_dir / f"{program.name}.log"
        process = SupervisedProcess(program, log_path, self._working_dir)
        with self._lock:
            process.start()
            self._processes.append(process)
        return process

    def stop(self) -> None:
        """Stop every program; the first one started is stopped last, when no other needs it."""
        self._stopping.set()
        self._watcher.join()
        first, others = self._processes[:1], self._processes[1:]
        for group in (others, first):
            for process in reversed(group):
                process.ask_to_stop()
            for process in reversed(group):
                process.wait_stopped()
        self._processes.clear()

    def _watch(self) -> None:
        while not self._stopping.wait(_WATCH_INTERVAL_S):
            with self._lock:
                news = [process.watch() for process in self._processes]
            for sentence in filter(None, news):
                self._say(sentence)


def require_alive(processes: Sequence[SupervisedProcess], most_exits: int = 3) -> None:
    """Raise when a program has ended so often that waiting for it is in vain."""
    for process in processes:
        if process.exit_count >= most_exits:
            raise NnfarmError(
                "infra.unavailable",
                f"{process.program.name} does not stay up; its log {process.log_path} ends with:\n"
                f"{process.log_tail()}",
            )
