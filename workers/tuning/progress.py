"""How far a tune job is: its steps, its stages' times, and the events that tell them."""

from __future__ import annotations

import time

from service.contracts.jobs import Stage, StageEvent
from service.contracts.kernels import KernelTuning
from service.contracts.targets import Abi
from workers.job_child import Report


class Progress:
    """Counts the steps of one attempt.

    Args:
        report: called with each event.
        abi: whose code is tuned.
    """

    def __init__(self, report: Report, abi: Abi) -> None:
        self._report = report
        self._abi = abi
        self._started_s = time.monotonic()
        self.done = 0
        self.total = 0
        self.durations: dict[str, int] = {}

    def begin(self, stage: Stage) -> float:
        """Tells that a stage begins; gives the moment, on the monotonic clock."""
        self._event(stage)
        return time.monotonic()

    def end(self, stage: Stage, began_s: float, is_step: bool = True) -> None:
        """Tells that a stage is over, and that this is a step where it is one."""
        duration_us = micros_since(began_s)
        self.durations[stage] = duration_us
        self.done += is_step
        self._event(stage, duration_us)

    def step(self, stage: Stage, tuned: KernelTuning | None = None) -> None:
        """Tells that a kernel is done, and what was found where it was measured."""
        self.done += 1
        self._event(stage, tuned=tuned)

    def duration_us(self) -> int:
        """Since the attempt began."""
        return micros_since(self._started_s)

    def _event(
        self, stage: Stage, duration_us: int | None = None, tuned: KernelTuning | None = None
    ) -> None:
        event = StageEvent(stage=stage, abi=self._abi, done=self.done, total=self.total)
        self._report(event.model_copy(update={"duration_us": duration_us, "tuned": tuned}))


def micros_since(moment_s: float) -> int:
    """Microseconds since a moment of the monotonic clock."""
    return round((time.monotonic() - moment_s) * 1e6)
