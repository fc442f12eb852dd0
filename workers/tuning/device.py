"""A tune job for a device: the kernels that likely take most, built to be measured there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tvm

from service.contracts.bench import MAX_KERNELS, Bench, BenchKernel, BenchLibrary, BenchTensor
from service.contracts.jobs import Stage
from service.contracts.targets import Abi
from service.contracts.tuning import TuneOutcome, TuneSpec
from workers.job_child import Report
from workers.pipeline.blobs import BlobFolder
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.link import AndroidLinker
from workers.toolchain.targets import target_for
from workers.tuning.bench import shape_of
from workers.tuning.cost import cost_of
from workers.tuning.drawing import Drawer
from workers.tuning.host import PARALLEL_CORES
from workers.tuning.job import TuneInput
from workers.tuning.kernels import Kernel, kernels_of
from workers.tuning.progress import Progress
from workers.tuning.run import seed_of, unsettled

_BUILD_SHARE = 0.75
"""Of the budget; the rest is the device's. Building a schedule takes longer than measuring it."""

_LEAST_S = 4.0
_MOST_S = 30.0
"""Bounds of what building one kernel's schedules may take."""

_LEAST_COST = 20_000
"""Points of a call that is worth a search: a few microseconds, as `workers.tuning.run.LEAST_US`."""


def build_bench(job: TuneInput, abi: Abi, work_dir: Path, report: Report) -> TuneOutcome:
    """Build what a device is to measure: kernels of a model that have no record yet.

    Args:
        job: what to tune.
        abi: the device's.
        work_dir: the job's folder; libraries go to `blobs/` in it.
        report: called with progress.

    Raises:
        NnfarmError: the model cannot be read.
    """
    progress = Progress(report, abi)
    began_s = progress.begin(Stage.INGEST)
    target = tvm.target.Target(target_for(abi) | {"num-cores": PARALLEL_CORES})
    module = ingest(job.model_path, job.spec.model_format, {}).graph.module
    kernels = kernels_of(module, target)
    unknown = unsettled(kernels, job.spec, abi)
    worth = _by_cost(unknown)
    progress.total = 2 + 2 * len(worth)  # the device does each of them once more
    progress.end(Stage.INGEST, began_s)
    began_s = progress.begin(Stage.TUNE)
    drawer = Drawer(target, AndroidLinker(abi, job.stub_dir), seed_of(job.spec))
    blobs = BlobFolder(work_dir / "blobs")
    end_s = began_s + job.spec.time_budget_s * _BUILD_SHARE
    built = tuple(_built(worth, drawer, blobs, end_s, progress))
    progress.end(Stage.TUNE, began_s)
    return TuneOutcome(
        attempt=job.spec.attempt,
        stage_durations_us=progress.durations,
        child_duration_us=progress.duration_us(),
        abi=abi,
        machine="",
        kernel_count=len(kernels),
        known_count=len(kernels) - len(unknown),
        tuned_count=0,
        before=None,
        after=None,
        bench=Bench(abi=abi, kernels=built, time_limit_ms=_limit_ms(job.spec, began_s)),
    )


def _limit_ms(spec: TuneSpec, began_s: float) -> int:
    """What building has left of the budget; half the device's part at least."""
    left_s = began_s + spec.time_budget_s - time.monotonic()
    return max(1, round(max(left_s, spec.time_budget_s * (1 - _BUILD_SHARE) / 2) * 1e3))


def _by_cost(kernels: tuple[Kernel, ...]) -> list[tuple[Kernel, int]]:
    """Kernels that are worth a search with their costs in an inference, the largest first."""
    costs = [(kernel, cost_of(kernel.function)) for kernel in kernels]
    worth = [(kernel, kernel.calls * cost) for kernel, cost in costs if cost >= _LEAST_COST]
    return sorted(worth, key=lambda pair: -pair[1])[:MAX_KERNELS]


def _built(
    kernels: list[tuple[Kernel, int]],
    drawer: Drawer,
    blobs: BlobFolder,
    end_s: float,
    progress: Progress,
) -> Iterator[BenchKernel]:
    costs = [cost for _, cost in kernels]
    for index, (kernel, cost) in enumerate(kernels):
        left_s = end_s - time.monotonic()
        if left_s < _LEAST_S / 2 and index > 0:
            return
        part_s = left_s * cost / sum(costs[index:])
        part_s = min(max(part_s, _LEAST_S), _MOST_S)
        with tempfile.TemporaryDirectory() as folder:
            # The file's name is the soname: two kernels of the same code must differ in it.
            library = Path(folder) / f"kernel_{index}.so"
            traces = drawer.draw(kernel, part_s, library)
            if traces:
                yield _described(kernel, traces, library, blobs)
        progress.step(Stage.TUNE)


def _described(
    kernel: Kernel, traces: tuple[str, ...], library: Path, blobs: BlobFolder
) -> BenchKernel:
    size_bytes = library.stat().st_size
    return BenchKernel(
        signature=kernel.signature,
        kernel=kernel.name[:500],
        calls=kernel.calls,
        tensors=tuple(
            BenchTensor(shape=shape_of(tensor), dtype=str(tensor.dtype))
            for tensor in kernel.function.ty.params
        ),
        library=BenchLibrary(
            path=library.name, sha256=blobs.add_file(library), size_bytes=size_bytes
        ),
        candidates=traces,
    )
