"""A tune job carried out: kernels in the order of their time, each result told as it comes."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator

from service.contracts.jobs import Stage
from service.contracts.kernels import KernelTiming, KernelTuning, TunedKernel
from service.contracts.targets import Abi
from service.contracts.tuning import TuneOutcome, TuneSpec
from workers.job_child import Report
from workers.pipeline.stages.ingest import ingest
from workers.tuning.host import host_abi, host_target, machine_name
from workers.tuning.job import TuneInput
from workers.tuning.kernels import Kernel, kernels_of
from workers.tuning.progress import Progress, micros_since
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


def seed_of(spec: TuneSpec) -> int:
    """Of an attempt's draws. Another job goes on where this one stops: it must draw others."""
    return zlib.crc32(f"{spec.tuning_id} {spec.attempt}".encode()) >> 2


def unsettled(kernels: tuple[Kernel, ...], spec: TuneSpec, abi: Abi) -> tuple[Kernel, ...]:
    """Kernels that have no record yet."""
    known = {key.signature for key in spec.known if key.abi is abi}
    return tuple(kernel for kernel in kernels if kernel.signature not in known)


class _Run:
    def __init__(self, job: TuneInput, report: Report) -> None:
        self._budget_end_s = time.monotonic()
        self._spec = job.spec
        self._path = job.model_path
        self._abi = host_abi()
        self._progress = Progress(report, self._abi)
        self._target = host_target(self._abi)
        self._machine = machine_name()
        self._seed = seed_of(job.spec)
        self._results: list[KernelTuning] = []

    def run(self) -> TuneOutcome:
        progress = self._progress
        began_s = progress.begin(Stage.INGEST)
        module = ingest(self._path, self._spec.model_format, {}).graph.module
        kernels = kernels_of(module, self._target)
        unknown = unsettled(kernels, self._spec, self._abi)
        progress.total = 2 + len(unknown)
        progress.end(Stage.INGEST, began_s)
        began_s = progress.begin(Stage.TUNE)
        self._budget_end_s = began_s + self._spec.time_budget_s
        for tuning in self._tune(unknown):
            self._results.append(tuning)
            progress.step(Stage.TUNE, tuning)
        progress.done = progress.total - 1
        progress.end(Stage.TUNE, began_s, is_step=False)
        began_s = progress.begin(Stage.MEASURE)
        records = self._records()
        left_s = max(0.0, self._budget_end_s - time.monotonic())
        times = before_and_after(module, self._target, records, left_s) if records else None
        progress.end(Stage.MEASURE, began_s)
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
            duration_us=micros_since(began_s),
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
            stage_durations_us=self._progress.durations,
            child_duration_us=self._progress.duration_us(),
            abi=self._abi,
            machine=self._machine,
            kernel_count=kernel_count,
            known_count=known_count,
            tuned_count=len(self._results),
            before=times[0] if times else None,
            after=times[1] if times else None,
        )
