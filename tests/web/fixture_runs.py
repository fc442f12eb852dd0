"""What the fixture's phones measured."""

from __future__ import annotations

import random
import statistics

from fixture_bench import ARTIFACTS, DEVICES, at

from service.contracts.errors import NnfarmError
from service.contracts.runs import (
    Accuracy,
    DeviceCondition,
    Fallback,
    LatencyStats,
    OutputAccuracy,
    RunMeasurement,
    RunStatus,
)
from service.resources.artifacts.schemas import Artifact
from service.resources.devices.schemas import Device
from service.resources.runs.schemas import Run, RunDevice, RunSummary

ORIGINAL_TOP1 = 0.953125


def _latency(samples: list[float]) -> LatencyStats:
    ordered = sorted(samples)
    median = statistics.median(ordered)
    return LatencyStats(
        count=len(ordered),
        min_us=ordered[0],
        median_us=median,
        mean_us=statistics.fmean(ordered),
        p90_us=ordered[int(len(ordered) * 0.9)],
        p99_us=ordered[int(len(ordered) * 0.99)],
        max_us=ordered[-1],
        mad_us=statistics.median(abs(one - median) for one in ordered),
        simulated=True,
    )


def _accuracy(level: int, on_cpu: bool) -> Accuracy:
    error = 3.1e-6 if on_cpu else 4.7e-4 * level
    same = on_cpu or level < 7
    return Accuracy(
        sample_count=64,
        outputs=(
            OutputAccuracy(
                name="logits",
                max_abs_error=error,
                max_rel_error=error / 9.2,
                mean_abs_error=error / 7,
                matches_nan=True,
            ),
        ),
        max_abs_error=error,
        max_rel_error=error / 9.2,
        top1=ORIGINAL_TOP1 if same else 0.9375,
        original_top1=ORIGINAL_TOP1,
        agreement=1.0 if same else 0.984375,
    )


def _measurement(artifact: Artifact, device: Device) -> RunMeasurement:
    level = artifact.feature_level
    falls_back = device.description.feature_level < level
    seed = random.Random(f"{artifact.id}{device.id}")
    middle = 6100.0 if falls_back else 5200.0 / level + 320
    samples = [
        middle * (1.4 if index == 3 else 1.0) * seed.gauss(1.0, 0.025) for index in range(120)
    ]
    fallback = Fallback(
        code="nnapi.level_too_low",
        detail=f"The phone has NNAPI feature level {device.description.feature_level}; "
        f"the artifact needs {level}.",
    )
    temperature = DeviceCondition(battery_percent=80, charging=False, temperature_c=30.5)
    valid = artifact.id != "art_l3_x86_64"
    return RunMeasurement(
        engine="cpu" if falls_back else "mixed",
        accelerators=() if falls_back else ("sim-npu/1.0/level 4",),
        fallbacks=(fallback,) if falls_back else (),
        latency=_latency(samples),
        samples_us=tuple(samples),
        load_us=8123.0,
        compile_us=912.0,
        first_run_us=31000.0,
        peak_memory_bytes=48_123_904,
        accuracy=_accuracy(level, falls_back),
        before=temperature,
        after=temperature,
        valid=valid,
        notes=() if valid else ("Too noisy: dispersion 12 % is over the limit of 5 %.",),
    )


def _run(artifact: Artifact, device: Device) -> Run:
    lost = artifact.feature_level == 2 and device.description.feature_level == 4
    problem = NnfarmError(
        "run.device_lost", "127.0.0.1:5604 closed the connection while the runner was measuring."
    ).to_problem()
    return Run(
        id=f"run_{artifact.feature_level}_{device.name}",
        compilation_id=artifact.compilation_id,
        artifact_id=artifact.id,
        feature_level=artifact.feature_level,
        abi=artifact.abi,
        device=device,
        status=RunStatus.FAILED if lost else RunStatus.SUCCEEDED,
        attempt=3 if lost else 1,
        measurement=None if lost else _measurement(artifact, device),
        error=problem if lost else None,
        log_tail="runner: sample 17 of 64\nadb: device '127.0.0.1:5604' not found" if lost else "",
        created_at=at(13),
        started_at=at(13, 2),
        finished_at=at(13, 9),
    )


RUNS: dict[str, Run] = {
    run.id: run
    for run in (
        _run(artifact, device)
        for device in DEVICES.values()
        for artifact in ARTIFACTS.values()
        if device.description.feature_level and artifact.abi in device.description.abis
    )
}


def run_summary(run: Run) -> RunSummary:
    device = run.device
    return RunSummary(
        id=run.id,
        artifact_id=run.artifact_id,
        feature_level=run.feature_level,
        abi=run.abi,
        device=device and RunDevice(id=device.id, name=device.name, simulated=True),
        status=run.status,
        attempt=run.attempt,
        error=run.error,
    )
