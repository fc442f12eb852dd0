"""Times of two or more functions, interleaved, with their dispersion.

On one thread the clock is that thread's processor time: a machine that does other work as well
interrupts a kernel for longer than the kernel takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from service.contracts.kernels import KernelTiming

_TURN_S = 0.002
"""Length of one function's turn in a round, so that the clock's own time does not count."""

LEAST_GAIN = 0.03
"""Share of the time that must be won: less is not told from noise, nor worth a record."""

Call = Callable[[], object]
Clock = Callable[[], float]
"""Seconds since some moment."""

Rounds = list[list[float]]
"""Microseconds a call: of each function, of each round."""


def interleaved(calls: Sequence[Call], rounds: int, clock: Clock = time.thread_time) -> Rounds:
    """The functions take turns; a machine that slows down slows all of them."""
    started_s = clock()
    for call in calls:
        call()  # threads start, pages are touched
    one_s = (clock() - started_s) / len(calls)
    count = max(1, round(_TURN_S / max(one_s, 1e-7)))
    times: Rounds = [[] for _ in calls]
    for _ in range(rounds):
        for call, found in zip(calls, times, strict=True):
            started_s = clock()
            for _ in range(count):
                call()
            found.append((clock() - started_s) / count * 1e6)
    return times


def timing(times: Sequence[float]) -> KernelTiming:
    """Median and spread of rounds, in microseconds."""
    low, _, high = statistics.quantiles(times, n=4)
    return KernelTiming(median_us=statistics.median(times), spread_us=(high - low) / 2)


def is_faster(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the second is faster beyond doubt: in three rounds of four, by enough."""
    ratios = [mine / theirs for theirs, mine in zip(before, after, strict=True)]
    return statistics.quantiles(ratios, n=4)[2] < 1 - LEAST_GAIN
