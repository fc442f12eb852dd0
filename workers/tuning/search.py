"""The search for one kernel's schedule: draw, build, screen; then the best against the rules'."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import tvm
from pydantic import TypeAdapter, ValidationError

from service.contracts.kernels import KernelTiming, Trace
from workers.backends.cpu.tuned import replay
from workers.tuning.bench import Bench, agree, cores, use_threads
from workers.tuning.forked import Tell, told_by
from workers.tuning.kernels import Kernel
from workers.tuning.space import draw_traces
from workers.tuning.timing import LEAST_GAIN, interleaved, is_faster, timing

MAX_TRIED = 96
_TRACE = TypeAdapter[str](Trace)
_SCREENED_ROUNDS = 3
_FINAL_ROUNDS = 21
_FINAL_S = 15.0
"""Building two schedules and the last measurement take at most so long."""

_FINAL_SHARE = 0.2

_WORSE_IN_PARALLEL = 1.05
"""Times as long on all cores: one thread tells best what is faster, but not how loops are cut."""

_HANG_S = 5.0
"""What a fork may be late: LLVM cannot be told to stop."""


@dataclass(frozen=True)
class Found:
    """What came of a search.

    Attributes:
        trace: of a schedule that is faster; None where there is none.
        before: the rules' schedule, on one thread.
        after: the best other one; None where none came near.
        rounds: of the measurement of the two.
        tried: schedules that ran.
    """

    trace: str | None
    before: KernelTiming
    after: KernelTiming | None
    rounds: int
    tried: int


@dataclass(frozen=True)
class _Screened:
    trace: str
    ratio: float


def rank(
    kernels: tuple[Kernel, ...], target: tvm.target.Target, seconds: float
) -> list[tuple[Kernel, KernelTiming]]:
    """Kernels with the time of one call by the rules, the one that takes most of all first.

    What crashes ends the list: a model whose kernels cannot be run is not tuned further.
    """

    def work(tell: Tell[tuple[int, KernelTiming]]) -> None:
        use_threads(1)
        for index, kernel in enumerate(kernels):
            call = Bench(kernel.ruled, target).call_of(kernel.ruled)
            tell((index, timing(interleaved([call], _SCREENED_ROUNDS)[0])))

    timed = [(kernels[index], time_of) for index, time_of in told_by(work, seconds)]
    return sorted(timed, key=lambda pair: -pair[0].calls * pair[1].median_us)


def search(
    kernel: Kernel, target: tvm.target.Target, before: KernelTiming, seconds: float, seed: int
) -> Found:
    """Look for a faster schedule.

    Args:
        kernel: what to schedule.
        target: of this machine.
        before: what is known of the rules' schedule; measured again beside the best other one.
        seconds: for all of it, but for one build that is under way.
        seed: another one draws other schedules.
    """
    screened = _explore(kernel, target, seconds * (1 - _FINAL_SHARE), seed)
    best = min(screened, key=lambda one: one.ratio, default=None)
    nothing = Found(None, before, None, _SCREENED_ROUNDS, len(screened))
    if best is None or best.ratio >= 1 - LEAST_GAIN:
        return nothing
    for is_kept, theirs, mine in told_by(_final(kernel, target, best.trace), _FINAL_S):
        kept = best.trace if is_kept else None
        return Found(kept, timing(theirs), timing(mine), _FINAL_ROUNDS, len(screened))
    return nothing


def _final(
    kernel: Kernel, target: tvm.target.Target, trace: str
) -> Callable[[Tell[tuple[bool, list[float], list[float]]]], None]:
    def work(tell: Tell[tuple[bool, list[float], list[float]]]) -> None:
        use_threads(1)
        bench = Bench(kernel.ruled, target)
        calls = [bench.call_of(f) for f in (kernel.ruled, replay(kernel.function, trace))]
        theirs, mine = interleaved(calls, _FINAL_ROUNDS)
        is_kept = is_faster(theirs, mine)
        if is_kept and cores() > 1:
            use_threads(cores())
            times = interleaved(calls, _FINAL_ROUNDS, time.perf_counter)
            parallel = [min(rounds) for rounds in times]
            is_kept = parallel[1] <= _WORSE_IN_PARALLEL * parallel[0]
        tell((is_kept, theirs, mine))

    return work


def _explore(
    kernel: Kernel, target: tvm.target.Target, seconds: float, seed: int
) -> list[_Screened]:
    deadline_s = time.monotonic() + seconds
    found: list[_Screened] = []
    # A fork that hangs or crashes over a schedule ends; another one goes on elsewhere.
    while (left_s := deadline_s - time.monotonic()) > 0 and len(found) < MAX_TRIED:
        count = len(found)
        found += told_by(_screening(kernel, target, seed, deadline_s), left_s + _HANG_S)
        if len(found) == count:
            break
        seed += 1
    return found[:MAX_TRIED]


def may_be_kept(trace: str) -> bool:
    """Whether the database would take it: there is no use in measuring anything else."""
    try:
        _TRACE.validate_python(trace)
    except ValidationError as error:
        print(f"not measured: {error.errors()[0]['msg']}")
        return False
    return True


def _screening(
    kernel: Kernel, target: tvm.target.Target, seed: int, deadline_s: float
) -> Callable[[Tell[_Screened]], None]:
    def work(tell: Tell[_Screened]) -> None:
        use_threads(1)
        bench = Bench(kernel.ruled, target)
        ruled = bench.call_of(kernel.ruled)
        wanted = bench.results(ruled)
        for trace in draw_traces(kernel.function, target, seed):
            if time.monotonic() > deadline_s:
                return
            if not may_be_kept(trace):
                continue
            call = bench.call_of(replay(kernel.function, trace))
            if not agree(bench.results(call), wanted):
                print(f"{kernel.name}: a schedule computes something else: {trace}")
                continue
            theirs, mine = interleaved([ruled, call], _SCREENED_ROUNDS)
            tell(_Screened(trace, min(mine) / min(theirs)))

    return work
