"""Runs a bench on one phone: push its libraries, have its kernels measured, clean up."""

from __future__ import annotations

import contextlib
import logging
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from device_farm.protocols.device import (
    DeviceLostError,
    DeviceProtocol,
    DeviceTimeoutError,
    TransferError,
)
from device_farm.resources.bundles import RUNNER, RuntimeBundle
from device_farm.strategies.device_store import DeviceStore, StoredPart, with_libraries
from device_farm.strategies.runner_call import (
    RunFailedError,
    call_runner,
    check_exit,
    device_errors,
    ended_early,
    log_tail_of,
)
from device_farm.strategies.runner_events import KernelEvent, RunnerEvents
from service.contracts.bench import Bench, BenchedKernel

log = logging.getLogger(__name__)

_FILE = "bench.json"
_LATE_S = 120.0
"""What the runner may exceed its time limit by: the last kernel is measured to its end."""


@dataclass(frozen=True)
class BenchRun:
    """What to run: everything is on the agent's disk already."""

    run_id: str
    bench: Bench
    libraries: dict[str, StoredPart]
    """By their names in the bench."""
    bundle: RuntimeBundle
    folder: Path
    """An empty folder of the agent's for this run's files."""


def run_bench(
    device: DeviceProtocol,
    job: BenchRun,
    cancelled: Callable[[], bool],
    tell: Callable[[BenchedKernel], None],
) -> str:
    """Has the kernels measured; leaves no run folder on the phone.

    Args:
        device: the phone.
        job: what to run.
        cancelled: asked often; true ends the run.
        tell: called with each kernel as soon as it is measured.

    Returns:
        The end of what the runner logged.

    Raises:
        NnfarmError: with a `run.*` code, see docs/reference/runner.md.
        CancelledError: `cancelled` turned true.
    """
    with device_errors():
        store = DeviceStore(device)
        bundle = store.put_bundle(job.bundle)
        store.put_parts(tuple(job.libraries.values()))
        file = job.folder / _FILE
        file.write_text(job.bench.model_dump_json())
        folder = store.make_run_folder(job.run_id, job.libraries, file)
        try:
            words = shlex.join((f"{bundle}/{RUNNER}", "--bench", f"{folder}/{_FILE}"))
            command = f"cd {shlex.quote(folder)} && {with_libraries(bundle, words)}"
            return _measure(device, job, command, cancelled, tell)
        finally:
            # A phone that is gone keeps the folder; the next run there has another name.
            with contextlib.suppress(DeviceLostError, DeviceTimeoutError, TransferError):
                store.remove_run_folder(job.run_id)


def _measure(
    device: DeviceProtocol,
    job: BenchRun,
    command: str,
    cancelled: Callable[[], bool],
    tell: Callable[[BenchedKernel], None],
) -> str:
    names = {kernel.signature: kernel.kernel for kernel in job.bench.kernels}
    failures: list[str] = []
    measured: list[BenchedKernel] = []

    def take(event: KernelEvent) -> None:
        if (found := event.measured()) is None:
            failures.append(f"{names.get(event.signature, event.signature)}: {event.error}")
            log.warning("not measured: %s", failures[-1])
            return
        measured.append(found)
        tell(found)

    events = RunnerEvents(on_kernel=take)
    timeout_s = job.bench.time_limit_ms / 1e3 + _LATE_S
    result = call_runner(device, command, timeout_s, cancelled, events)
    check_exit(result, events)
    if events.end is None or events.bad_lines:
        raise ended_early(events, result)
    if failures and not measured:
        raise RunFailedError(
            "run.failed", f"No kernel ran on the device: {failures[0]}", log_tail_of(result)
        )
    return log_tail_of(result)
