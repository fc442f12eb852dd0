"""A tune job carried out: kernels in the order of their time, each result told as it comes."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator

from service.contracts.jobs import Stage, StageEvent
from service.contracts.kernels import KernelTiming, KernelTuning, TunedKernel
from service.contracts.tuning import TuneOutcome
from workers.job_child import Report
from workers.pipeline.stages.ingest import ingest
from workers.tuning.host import host_abi, host_target, machine_name
from workers.tuning.job import TuneInput
from workers.tuning.kernels import Kernel, kernels_of
from workers.tuning.search import rank, search
from workers.tuning.whole_model import before_and_after

_RANKING_SHARE = 0.4
"""Of the budget for kernels, at most."""

_MEASURE_SHARE = 0.2
"""Of the budget, kept for the whole model at the end."""

_LEAST_S = 8.0
_MOST_S = 60.0
"""Bounds of one kernel's part of the budget; what is left over waits for another job."""

LEAST_US = 5.0
"""A call that is shorter is not worth a search: its time is the call itself."""


def run(job: TuneInput, report: Report) -> TuneOutcome:
    """Tune the kernels of a model that have no record yet, within the budget.

    Args:
        job: what to tune.
        report: called with progress; a kernel's result is in the event that ends it.

    Raises:
        NnfarmError: the model cannot be read, or this machine runs no Android ABI.
    """
    return _Run(job, report).run()


class _Run:
    def __init__(self, job: TuneInput, report: Report) -> None:
        self._started_s = self._budget_end_s = time.monotonic()
        self._spec = job.spec
        self._path = job.model_path
        self._report = report
        self._abi = host_abi()
        self._target = host_target(self._abi)
        self._machine = machine_name()
        # Another job goes on where this one stops: it must not draw the same schedules.
        self._seed = zlib.crc32(f"{job.spec.tuning_id} {job.spec.attempt}".encode()) >> 2
        self._results: list[KernelTuning] = []
        self._done = 0
        self._total = 0
        self._durations: dict[str, int] = {}

    def run(self) -> TuneOutcome:
        began_s = self._begin(Stage.INGEST)
        module = ingest(self._path, self._spec.model_format, {}).graph.module
        kernels = kernels_of(module, self._target)
        known = {key.signature for key in self._spec.known if key.abi is self._abi}
        unknown = tuple(kernel for kernel in kernels if kernel.signature not in known)
        self._total = 2 + len(unknown)
        self._end(Stage.INGEST, began_s)
        began_s = self._begin(Stage.TUNE)
        self._budget_end_s = began_s + self._spec.time_budget_s
        for tuning in self._tune(unknown):
            self._results.append(tuning)
            self._done += 1
            self._event(Stage.TUNE, tuned=tuning)
        self._done = self._total - 1
        self._end(Stage.TUNE, began_s, is_step=False)
        began_s = self._begin(Stage.MEASURE)
        records = self._records()
        left_s = max(0.0, self._budget_end_s - time.monotonic())
        times = before_and_after(module, self._target, records, left_s) if records else None
        self._end(Stage.MEASURE, began_s)
        return self._outcome(len(kernels), len(kernels) - len(unknown), times)

    def _tune(self, kernels: tuple[Kernel, ...]) -> Iterator[KernelTuning]:
        kept_s = self._spec.time_budget_s * _MEASURE_SHARE
        for_kernels_s = self._spec.time_budget_s - kept_s
        ranked = rank(kernels, self._target, for_kernels_s * _RANKING_SHARE)
        worth = [pair for pair in ranked if pair[1].median_us >= LEAST_US]
        weights = [kernel.calls * timing.median_us for kernel, timing in worth]
        for index, (kernel, timing) in enumerate(worth):
            left_s = self._budget_end_s - kept_s - time.monotonic()
            if left_s < _LEAST_S / 2:
                return
            part_s = left_s * weights[index] / sum(weights[index:])
            part_s = min(max(part_s, _LEAST_S), _MOST_S, left_s)
            yield self._tuned(kernel, timing, part_s)

    def _tuned(self, kernel: Kernel, timing: KernelTiming, seconds: float) -> KernelTuning:
        began_s = time.monotonic()
        found = search(kernel, self._target, timing, seconds, self._seed)
        return KernelTuning(
            abi=self._abi,
            signature=kernel.signature,
            kernel=kernel.name[:500],
            calls=kernel.calls,
            trace=found.trace,
            before=found.before,
            after=found.after,
            rounds=found.rounds,
            tried=found.tried,
            duration_us=_micros(time.monotonic() - began_s),
            machine=self._machine,
        )

    def _records(self) -> tuple[TunedKernel, ...]:
        """Those of before, and those of this attempt."""
        new = (
            TunedKernel(
                record_id="",
                abi=one.abi,
                signature=one.signature,
                trace=one.trace,
                before_us=one.before.median_us,
                after_us=one.after.median_us,
            )
            for one in self._results
            if one.trace is not None and one.after is not None
        )
        old = (record for record in self._spec.tuned if record.abi is self._abi)
        return (*old, *new)

    def _outcome(
        self,
        kernel_count: int,
        known_count: int,
        times: tuple[KernelTiming, KernelTiming] | None,
    ) -> TuneOutcome:
        return TuneOutcome(
            attempt=self._spec.attempt,
            stage_durations_us=self._durations,
            child_duration_us=_micros(time.monotonic() - self._started_s),
            abi=self._abi,
            machine=self._machine,
            kernel_count=kernel_count,
            known_count=known_count,
            tuned_count=len(self._results),
            before=times[0] if times else None,
            after=times[1] if times else None,
        )

    def _begin(self, stage: Stage) -> float:
        self._event(stage)
        return time.monotonic()

    def _end(self, stage: Stage, began_s: float, is_step: bool = True) -> None:
        duration_us = _micros(time.monotonic() - began_s)
        self._durations[stage] = duration_us
        self._done += is_step
        self._event(stage, duration_us)

    def _event(
        self, stage: Stage, duration_us: int | None = None, tuned: KernelTuning | None = None
    ) -> None:
        event = StageEvent(stage=stage, abi=self._abi, done=self._done, total=self._total)
        self._report(event.model_copy(update={"duration_us": duration_us, "tuned": tuned}))


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
