"""What a compilation takes, stage by stage, beside plain TVM in the same run.

    python -m benchmarks.compile_time [model.onnx ...] --level 7 --abi arm64-v8a --repeats 3

Without a model: MobileNetV2 and ResNet50 with random weights. Ours runs in the sandbox a worker
uses, without a service (`service_overhead` adds that); TVM in a process of its own
(`benchmarks.plain_tvm`). Figures are processor seconds, ended children included, medians over the
repeats, and peak resident memory, which for ours has the warm server's pages in it. Needs the
native parts (NNFARM_NATIVE_DIR). Prints one JSON document, and the table to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import measured_compile, networks
from benchmarks.machine import describe_machine
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOptions, CompileTarget, JobSpec, ModelFormat
from service.contracts.targets import Abi
from workers.pipeline.plan import JobInput
from workers.sandbox import Sandbox
from workers.settings import WorkerSettings
from workers.tasks.compile import COMPILATION
from workers.toolchain.link import AndroidLinker

KIND = replace(COMPILATION, entry=measured_compile.__name__)
TARGET_CPU_S = {"mobilenet_v2": 4.0, "resnet50": 10.0}
"""Promised for one level and one ABI."""
MEMORY_PER_MODEL_BYTE, MEMORY_BASE_BYTES = 3, 600 << 20
"""Promised peak of the child."""

Sample = dict[str, Any]
"""As `benchmarks.usage.Usage.to_json` writes it, or its medians."""


def main() -> None:
    arguments = _parse()
    settings = WorkerSettings.model_validate({"worker_token": "not-used-here"})
    AndroidLinker(arguments.abi, settings.stub_dir).prepare()
    sandbox = Sandbox([KIND.entry], settings.limits)
    try:
        sandbox.start()
        with tempfile.TemporaryDirectory() as folder:
            paths = arguments.models or _default_models(Path(folder))
            models = {path.stem: _measure(sandbox, settings, path, arguments) for path in paths}
    finally:
        sandbox.close()
    for name, found in models.items():
        print("\n".join(_table(name, found)), file=sys.stderr)
    request = {name: getattr(arguments, name) for name in ("level", "abi", "repeats")}
    document = {"machine": describe_machine(), "request": request, "models": models}
    json.dump(document, sys.stdout, indent=2)
    print()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--level", type=int, default=7)
    parser.add_argument("--abi", type=Abi, default=Abi.ARM64_V8A)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def _default_models(folder: Path) -> list[Path]:
    return [
        networks.save(make(), folder / f"{make.__name__}.onnx")
        for make in (networks.mobilenet_v2, networks.resnet50)
    ]


def _measure(
    sandbox: Sandbox, settings: WorkerSettings, model: Path, arguments: argparse.Namespace
) -> dict[str, Any]:
    turns = range(arguments.repeats)
    job = (arguments.level, arguments.abi)
    ours = [_compile(sandbox, settings, model, *job) for _ in turns]
    plain = [_compile_plainly(model, *job) for _ in turns]
    return {
        "model_bytes": model.stat().st_size,
        "nnfarm": _median(ours),
        "plain_tvm": _median(plain),
        "nnfarm_samples": ours,
        "plain_tvm_samples": plain,
    }


def _compile(
    sandbox: Sandbox, settings: WorkerSettings, model: Path, level: int, abi: Abi
) -> Sample:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = _job(settings, Path(shutil.copy(model, folder / "model.onnx")), level, abi)
        (folder / "job.json").write_text(job.model_dump_json(), encoding="utf-8")
        result = sandbox.run(KIND, folder, lambda _: None, threading.Event())
        if isinstance(result.outcome, NnfarmError):
            raise SystemExit(f"{model}: {result.outcome.detail}\n{result.log_tail}")
        text = (folder / measured_compile.FILE_NAME).read_text(encoding="utf-8")
        return dict(json.loads(text))


def _job(settings: WorkerSettings, model: Path, level: int, abi: Abi) -> JobInput:
    content = model.read_bytes()
    spec = JobSpec(
        compilation_id="cmp_benchmark",
        attempt=1,
        job_token="",
        model_name=model.stem,
        model_format=ModelFormat.ONNX,
        model_sha256=hashlib.sha256(content).hexdigest(),
        model_size_bytes=len(content),
        dataset_sha256=None,
        targets=(CompileTarget(feature_level=level, abi=abi),),
        options=CompileOptions(),
    )
    return JobInput(
        spec=spec,
        model_path=model,
        dataset_path=None,
        stub_dir=settings.stub_dir,
        player_library=settings.player_library,
    )


def _compile_plainly(model: Path, level: int, abi: Abi) -> Sample:
    command = [sys.executable, "-m", "benchmarks.plain_tvm", str(model), str(level), abi]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def _median(samples: list[Sample]) -> Sample:
    """Median of each figure, a figure being a number or a table of numbers."""
    return {
        name: _median([sample[name] for sample in samples])
        if isinstance(value, dict)
        else statistics.median(sample[name] for sample in samples)
        for name, value in samples[0].items()
    }


def _table(name: str, found: dict[str, Any]) -> Iterable[str]:
    ours, plain = found["nnfarm"], found["plain_tvm"]
    yield f"{name:<16}{'nnfarm':>10}{'MiB':>7}{'plain TVM':>12}{'MiB':>7}"
    for stage in {**ours["stages_cpu_us"], **plain["stages_cpu_us"]}:
        yield f"  {stage:<14}{_cell(ours, stage)}  {_cell(plain, stage):>17}"
    totals = [f"{used['cpu_us'] / 1e6:>8.2f} s{_mib(used['peak_bytes'])}" for used in (ours, plain)]
    yield f"  {'all':<14}{'  '.join(totals)}"
    allowed = MEMORY_PER_MODEL_BYTE * found["model_bytes"] + MEMORY_BASE_BYTES
    target_s = TARGET_CPU_S.get(name)
    promised = "" if target_s is None else f"{target_s:.0f} s, "
    yield f"  promised: under {promised}{allowed >> 20} MiB"


def _cell(used: Sample, stage: str) -> str:
    if stage not in used["stages_cpu_us"]:
        return f"{'-':>10}{'':>7}"
    return f"{used['stages_cpu_us'][stage] / 1e6:>8.2f} s{_mib(used['stages_peak_bytes'][stage])}"


def _mib(size_bytes: float) -> str:
    return f"{size_bytes / (1 << 20):>7.0f}"


if __name__ == "__main__":
    main()
