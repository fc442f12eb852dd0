"""Progress of a quantize job: its stages in order, calibration counted in samples."""

from __future__ import annotations

import math
import time

from service.contracts.jobs import Stage, StageEvent
from workers.job_child import Report

_STAGES = (Stage.PREPARE, Stage.CALIBRATE, Stage.QUANTIZE, Stage.MEASURE)
_EVENTS_WHILE_CALIBRATING = 20


class Progress:
    """Times stages and reports them.

    Args:
        report: called with every event.
        sample_count: of the calibration; each is a step.
    """

    def __init__(self, report: Report, sample_count: int) -> None:
        self.durations_us: dict[str, int] = {}
        self._report = report
        self._sample_count = sample_count
        self._interval = math.ceil(sample_count / _EVENTS_WHILE_CALIBRATING)
        self._stage: Stage | None = None
        self._started_s = 0.0
        self._done = 0

    def begin(self, stage: Stage) -> None:
        """The stage before is over, this one begins."""
        self.end()
        self._stage, self._started_s = stage, time.perf_counter()
        self._emit()

    def sample_done(self, count: int) -> None:
        """So many samples have been seen."""
        if count == self._sample_count:
            return  # the end of the stage says so
        self._done += 1
        if count % self._interval == 0:
            self._emit()

    def end(self) -> None:
        """The stage in hand is over."""
        if self._stage is None:
            return
        duration_us = round((time.perf_counter() - self._started_s) * 1e6)
        self.durations_us[self._stage] = duration_us
        self._done += 1
        self._emit(duration_us)
        self._stage = None

    def _emit(self, duration_us: int | None = None) -> None:
        assert self._stage is not None
        self._report(
            StageEvent(
                stage=self._stage,
                done=self._done,
                # The end of each stage; the last sample ends the calibration.
                total=len(_STAGES) + self._sample_count - 1,
                duration_us=duration_us,
            )
        )
