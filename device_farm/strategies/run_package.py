"""Runs one package on one phone: push, run, collect, clean up."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from device_farm.protocols.device import (
    CancelledError,
    DeviceLostError,
    DeviceProtocol,
    DeviceTimeoutError,
    ShellResult,
    StorageFullError,
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
from device_farm.strategies.runner_events import MeasuredEvents, RunnerEvents
from service.contracts.artifacts import Manifest
from service.contracts.errors import NnfarmError
from service.contracts.runs import DeviceCondition, MeasureOptions

CRASH_RECORD = "crashes.jsonl"

_CODE_BY_EXIT = {3: "run.bad_package", 7: "run.storage_full"}
_SIGNALLED = 128
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_LOG_TAIL_CHARS = 16 * 1024
_KILL_TIMEOUT_S = 10.0


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


class RunFailedError(NnfarmError):
    """A run that failed on the device, with what the runner logged."""

    def __init__(self, code: str, detail: str, log_tail: str) -> None:
        super().__init__(code, detail)
        self.log_tail = log_tail


def run_package(
    device: DeviceProtocol, job: PackageRun, cancelled: Callable[[], bool]
) -> PackageResult:
    """Runs the package and brings its outputs back; leaves no run folder on the phone.

    Raises:
        NnfarmError: with a `run.*` code, see docs/reference/runner.md.
        CancelledError: `cancelled` turned true.
    """
    _check_names(job)
    try:
        return _run(device, job, cancelled)
    except DeviceLostError as error:
        raise NnfarmError("run.device_lost", str(error)) from error
    except DeviceTimeoutError as error:
        raise NnfarmError("run.timeout", str(error)) from error
    except StorageFullError as error:
        raise NnfarmError("run.storage_full", str(error)) from error
    except TransferError as error:
        raise NnfarmError("run.failed", str(error)) from error


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
    events, result = _start_runner(device, command, job.measure.timeout_s, cancelled)
    after = read_condition(device)
    log_tail = result.stderr[-_LOG_TAIL_CHARS:]
    measured = _check_exit(result, events, log_tail)
    outputs = job.folder / "outputs.safetensors"
    device.pull(f"{places.folder}/outputs.safetensors", outputs)
    warm = places.cache.is_warm
    return PackageResult(events, measured, outputs, warm, before, after, log_tail)


def _cache_key(manifest: Manifest) -> str:
    """Changes with whatever may change what NNAPI compiles."""
    return hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()


def _check_names(job: PackageRun) -> None:
    for name in (job.run_id, *job.parts):
        if not _PLAIN_NAME.fullmatch(name):
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


def _start_runner(
    device: DeviceProtocol, command: str, timeout_s: float, cancelled: Callable[[], bool]
) -> tuple[RunnerEvents, ShellResult]:
    events = RunnerEvents()
    try:
        result = device.run(command, timeout_s=timeout_s, on_line=events.feed, cancelled=cancelled)
    except (DeviceTimeoutError, CancelledError):
        # A real phone does not end a command because its connection was dropped.
        if events.start is not None:
            with contextlib.suppress(DeviceLostError, DeviceTimeoutError):
                device.run(f"kill -9 {events.start.pid}", timeout_s=_KILL_TIMEOUT_S)
        raise
    return events, result


def _check_exit(result: ShellResult, events: RunnerEvents, log_tail: str) -> MeasuredEvents:
    """Raises the error of the runner's exit code, or of an end without the needed events."""
    code = result.exit_code
    if code == 0:
        if measured := events.measured():
            return measured
        lines = f"; unreadable: {events.bad_lines[0]!r}" if events.bad_lines else ""
        detail = f"The runner ended without all its events{lines}."
        raise RunFailedError("run.failed", detail, log_tail)
    if code > _SIGNALLED:
        detail = f"Signal {code - _SIGNALLED} ended the runner."
        raise RunFailedError("run.crashed", detail, log_tail)
    words = events.error.detail if events.error else log_tail.strip()[-300:]
    detail = f"The runner ended with code {code}: {words or 'it said nothing'}"
    raise RunFailedError(_CODE_BY_EXIT.get(code, "run.failed"), detail, log_tail)
