"""What the end of a child process means: a result, or which error.

Only limits that the child ran into and its own signals are told apart here; what it says about
the model is its word (`problem.json`).
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from typing import Any

from service.contracts.errors import ErrorClass, NnfarmError, from_problem
from workers.confine import SandboxLimits
from workers.fork_server import EXIT_MEMORY, EXIT_UNCONFINED
from workers.job_folder import JobFolder
from workers.job_kind import JobKind, Outcome

# Native code that gets no memory aborts, or throws something the child reports as a bug.
_MEMORY_SIGNS = re.compile(r"\bMemoryError\b|bad_alloc|annot allocate memory|out of memory")


@dataclass(frozen=True)
class Ending:
    """How a child process ended.

    Attributes:
        status: what wait() gave.
        out_of_time: the parent killed it at its time limit.
    """

    status: int
    out_of_time: bool


def judge(
    kind: JobKind[Any, Outcome], ending: Ending, folder: JobFolder[Outcome], limits: SandboxLimits
) -> Outcome:
    """What the end of a child means.

    Raises:
        NnfarmError: anything but a good end.
    """
    mebibytes = limits.memory_bytes >> 20
    memory = _limit(kind, "memory_bytes", limits.memory_bytes, f"{mebibytes} MiB memory")
    starved = _MEMORY_SIGNS.search(folder.log_tail()) is not None
    if ending.out_of_time:
        raise _limit(kind, "wall_s", limits.wall_s, f"{limits.wall_s:g} s")
    if os.WIFSIGNALED(ending.status):
        raise memory if starved else _explain_signal(kind, os.WTERMSIG(ending.status), limits)
    code = os.WEXITSTATUS(ending.status)
    if code == EXIT_MEMORY:
        raise memory
    if code == EXIT_UNCONFINED:
        raise NnfarmError("infra.unavailable", "This worker cannot confine its jobs.")
    if problem := folder.problem():
        error = from_problem(problem)
        raise memory if starved and error.kind.error_class is ErrorClass.BUG else error
    if code != 0:
        raise _crashed(kind, f"ended with code {code}", exit_code=code)
    if outcome := folder.outcome():
        return outcome
    raise _crashed(kind, "ended well but left no result")


def _explain_signal(kind: JobKind[Any, Outcome], number: int, limits: SandboxLimits) -> NnfarmError:
    if number == signal.SIGXCPU:
        return _limit(kind, "cpu_s", limits.cpu_s, f"{limits.cpu_s} s of processor time")
    if number == signal.SIGXFSZ:
        return _limit(kind, "file_bytes", limits.file_bytes, f"{limits.file_bytes >> 20} MiB files")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return _crashed(kind, f"was ended by {name}", signal=name)


def _crashed(kind: JobKind[Any, Outcome], how: str, **details: object) -> NnfarmError:
    return NnfarmError(f"{kind.area}.crashed", f"The {kind.actor} {how}.", **details)


def _limit(kind: JobKind[Any, Outcome], name: str, value: float, amount: str) -> NnfarmError:
    sentence = f"The {kind.actor} needs more than the {amount} a job may use."
    return NnfarmError(f"{kind.area}.limit_exceeded", sentence, limit=name, value=value)
