"""Turns what a run gave into the measurement that is reported."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load_file

from device_farm.measure.accuracy import OutputMismatchError, compare_outputs
from device_farm.measure.latency import latency_stats
from device_farm.measure.validity import doubts
from device_farm.strategies.run_package import PackageResult
from device_farm.strategies.runner_events import RunnerEvents
from service.contracts.artifacts import Manifest
from service.contracts.errors import NnfarmError
from service.contracts.jobs import EvaluationSet
from service.contracts.runs import Accuracy, RunMeasurement

_CACHE_LEVEL = 3  # NNAPI has a compilation cache from there


def measurement_of(
    result: PackageResult,
    manifest: Manifest,
    evaluation: EvaluationSet,
    expected: Path,
    *,
    simulated: bool,
) -> RunMeasurement:
    """The measurement of a run that ended well.

    Args:
        result: of `run_package`.
        manifest: of the artifact.
        evaluation: the set that was fed.
        expected: the set's outputs by the original model, safetensors.
        simulated: whether the phone is a virtual one.

    Raises:
        NnfarmError: `run.failed` when the outputs or samples are not of the form they must be.
    """
    events, measured = result.events, result.measured
    try:
        latency = latency_stats(measured.latency.samples_us, simulated=simulated)
    except ValueError as error:
        raise NnfarmError("run.failed", f"The runner's latency is unusable: {error}.") from error
    notes = doubts(latency, result.before, result.after)
    offloaded = measured.end.engine != "cpu"
    compile_us = sum(graph.compile_us for graph in events.subgraphs) if offloaded else 0.0
    cold_us, cached_us = _compile_times(result, compile_us) if offloaded else (None, None)
    return RunMeasurement(
        engine=measured.end.engine,
        accelerators=_accelerators(events) if offloaded else (),
        cpu_variant=measured.loaded.cpu_variant,
        fallbacks=tuple(events.fallbacks),
        latency=latency,
        samples_us=measured.latency.samples_us,
        load_us=measured.loaded.load_us,
        compile_us=compile_us,
        compile_cold_us=cold_us,
        compile_cached_us=cached_us,
        first_run_us=measured.first_run.us,
        peak_memory_bytes=events.memory.peak_rss_bytes if events.memory else None,
        accuracy=_accuracy(result.outputs, expected, manifest, evaluation),
        before=result.before,
        after=result.after,
        valid=not notes,
        notes=notes,
    )


def _compile_times(result: PackageResult, compile_us: float) -> tuple[float | None, float | None]:
    """Cold and by the cache; the run itself compiled by a cache that was warm."""
    if times := result.events.compile_times:
        return times.cold_us, times.cached_us
    nnapi = result.events.nnapi
    caches = result.cache_was_warm and nnapi is not None and nnapi.feature_level >= _CACHE_LEVEL
    return None, compile_us if caches else None


def _accelerators(events: RunnerEvents) -> tuple[str, ...]:
    """The devices that hold subgraphs, as name/version/level; levels 1 and 2 cannot tell."""
    known = {device.name: device for device in events.nnapi.devices} if events.nnapi else {}
    used = dict.fromkeys(name for graph in events.subgraphs for name in graph.devices)
    return tuple(
        f"{name}/{known[name].version}/{known[name].feature_level}" if name in known else name
        for name in used
    )


def _accuracy(
    outputs: Path, expected: Path, manifest: Manifest, evaluation: EvaluationSet
) -> Accuracy:
    try:
        return compare_outputs(
            load_file(expected),
            load_file(outputs),
            [output.name for output in manifest.signature.outputs],
            labels=evaluation.labels,
            original_top1=evaluation.original_top1,
        )
    except (OutputMismatchError, SafetensorError) as error:
        raise NnfarmError("run.failed", f"The outputs cannot be compared: {error}.") from error
