from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from workers.tuning.forked import Tell, told_by


def test_everything_is_told_in_order() -> None:
    def work(tell: Tell[int]) -> None:
        for number in range(5):
            tell(number)

    assert list(told_by(work, 30.0)) == [0, 1, 2, 3, 4]


def test_what_was_told_before_a_crash_is_kept() -> None:
    def work(tell: Tell[str]) -> None:
        tell("kept")
        os.kill(os.getpid(), signal.SIGSEGV)
        tell("never")

    assert list(told_by(work, 30.0)) == ["kept"]


def test_a_fork_that_hangs_is_killed_in_time() -> None:
    def work(tell: Tell[int]) -> None:
        tell(os.getpid())
        threading.Event().wait()

    [pid] = told_by(work, 0.5)
    assert not Path(f"/proc/{pid}").exists()


def test_a_fork_nobody_listens_to_any_more_is_killed() -> None:
    def work(tell: Tell[int]) -> None:
        tell(os.getpid())
        threading.Event().wait()

    told = told_by(work, 30.0)
    pid = next(told)
    told.close()  # type: ignore[attr-defined]
    assert not Path(f"/proc/{pid}").exists()
