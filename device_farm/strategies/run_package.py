"""Runs one package on one phone: push, run, collect, clean up."""

from __future__ import annotations

import contextlib
import hashlib
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
from device_farm.strategies.condition import read_condition
from device_farm.strategies.device_store import (
    CompilationCache,
    DeviceStore,
    StoredPart,
    with_libraries,
)
from device_farm.strategies.runner_call import (
    PLAIN_NAME,
    call_runner,
    check_exit,
    device_errors,
    ended_early,
    log_tail_of,
)
from device_farm.strategies.runner_events import MeasuredEvents, RunnerEvents
from service.contracts.artifacts import Manifest
from service.contracts.errors import NnfarmError
from service.contracts.runs import DeviceCondition, MeasureOptions

CRASH_RECORD = "crashes.jsonl"


@dataclass(frozen=True)
class PackageRun:
    """What to run: everything is on the agent's disk already."""

    run_id: str
    manifest: Manifest
    parts: dict[str, StoredPart]
    """By the name inside the package."""
    inputs: StoredPart
    bundle: RuntimeBundle
    measure: MeasureOptions
    folder: Path
    """An empty folder of the agent's for this run's files."""


@dataclass(frozen=True)
class PackageResult:
    """What a run that ended well gave."""

    events: RunnerEvents
    measured: MeasuredEvents
    outputs: Path
    cache_was_warm: bool
    """NNAPI's compilation cache was there from an earlier run."""
    before: DeviceCondition
    after: DeviceCondition
    log_tail: str


def run_package(
    device: DeviceProtocol, job: PackageRun, cancelled: Callable[[], bool]
) -> PackageResult:
    """Runs the package and brings its outputs back; leaves no run folder on the phone.

    Raises:
        NnfarmError: with a `run.*` code, see docs/reference/runner.md.
        CancelledError: `cancelled` turned true.
    """
    _check_names(job)
    with device_errors():
        return _run(device, job, cancelled)


def _run(device: DeviceProtocol, job: PackageRun, cancelled: Callable[[], bool]) -> PackageResult:
    store = DeviceStore(device)
    bundle = store.put_bundle(job.bundle)
    store.put_parts((*job.parts.values(), job.inputs))
    manifest = job.folder / "manifest.json"
    manifest.write_text(job.manifest.model_dump_json())
    folder = store.make_run_folder(job.run_id, job.parts, manifest)
    cache = store.compilation_cache(_cache_key(job.manifest))
    try:
        return _run_in_folder(device, job, cancelled, _Places(store, bundle, folder, cache))
    except BaseException:
        with contextlib.suppress(DeviceLostError, DeviceTimeoutError, TransferError):
            store.forget_cache(cache)
        raise
    finally:
        # A phone that is gone keeps the folder; the next run there has another name.
        with contextlib.suppress(DeviceLostError, DeviceTimeoutError, TransferError):
            store.remove_run_folder(job.run_id)


@dataclass(frozen=True)
class _Places:
    """Where a run's files are on the phone."""

    store: DeviceStore
    bundle: str
    folder: str
    cache: CompilationCache


def _run_in_folder(
    device: DeviceProtocol, job: PackageRun, cancelled: Callable[[], bool], places: _Places
) -> PackageResult:
    before = read_condition(device)
    command = _command(places, job)
    events = RunnerEvents()
    result = call_runner(device, command, job.measure.timeout_s, cancelled, events)
    after = read_condition(device)
    check_exit(result, events)
    if (measured := events.measured()) is None:
        raise ended_early(events, result)
    outputs = job.folder / "outputs.safetensors"
    device.pull(f"{places.folder}/outputs.safetensors", outputs)
    warm = places.cache.is_warm
    return PackageResult(events, measured, outputs, warm, before, after, log_tail_of(result))


def _cache_key(manifest: Manifest) -> str:
    """Changes with whatever may change what NNAPI compiles."""
    return hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()


def _check_names(job: PackageRun) -> None:
    for name in (job.run_id, *job.parts):
        if not PLAIN_NAME.fullmatch(name):
            raise NnfarmError("run.bad_package", f"{name!r} is no plain file name")


def _command(places: _Places, job: PackageRun) -> str:
    store, folder, measure = places.store, places.folder, job.measure
    arguments = [
        f"{places.bundle}/{RUNNER}",
        f"--package={folder}",
        f"--inputs={store.path('parts', job.inputs.sha256)}",
        # Kept on the phone: what crashed or hung a driver is not tried again there.
        f"--crash-record={store.path(CRASH_RECORD)}",
        f"--outputs={folder}/outputs.safetensors",
        f"--warmup={measure.warmup_count}",
        f"--iterations={measure.min_iterations}",
        f"--min-duration-ms={measure.min_duration_ms}",
        f"--max-iterations={measure.max_iterations}",
        f"--cache-dir={places.cache.path}",
    ]
    if not places.cache.is_warm:
        arguments.append("--compile-times")
    spaced = (part for argument in arguments for part in argument.split("=", 1))
    return f"cd {shlex.quote(folder)} && {with_libraries(places.bundle, shlex.join(spaced))}"
