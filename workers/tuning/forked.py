"""Work in a forked process that tells what it finds while it goes on.

A schedule may make LLVM think for minutes or its code crash; both end the fork, not the job, and
what it had told is kept.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TypeVar

Found = TypeVar("Found")
Tell = Callable[[Found], None]


def told_by(work: Callable[[Tell[Found]], None], timeout_s: float) -> Iterator[Found]:
    """Everything that `work` tells, in order, until it returns, dies, or its time is over.

    The caller must have one thread: threads do not survive a fork.

    Args:
        work: runs in the fork; what it tells must be picklable.
        timeout_s: after which the fork is killed.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()
    deadline_s = time.monotonic() + timeout_s
    try:
        while ours.poll(max(0.0, deadline_s - time.monotonic())):
            try:
                yield ours.recv()
            except EOFError:
                return
    finally:
        process.kill()
        process.join()
        ours.close()


def _work(work: Callable[[Tell[Found]], None], pipe: Connection) -> None:
    work(pipe.send)
