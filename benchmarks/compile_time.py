"""How long a compilation takes, by stage, in the same sandbox a worker uses; no service.

    python -m benchmarks.compile_time [model.onnx ...] --abis arm64-v8a --repeats 3

Without a model it takes MobileNetV2 with random weights. Each model is compiled for one level and
for five; the child's time of both and ingest + partition + codegen of one level are what the
project has promised. Needs the native parts (NNFARM_NATIVE_DIR). Prints one JSON document.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.networks import save_mobilenet_v2
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOptions, CompileTarget, JobSpec, ModelFormat
from service.contracts.targets import Abi
from workers.pipeline.plan import JobInput
from workers.sandbox import Sandbox
from workers.settings import WorkerSettings
from workers.toolchain.link import AndroidLinker

ONE_LEVEL = (7,)
FIVE_LEVELS = (1, 2, 3, 4, 7)


def main() -> None:
    arguments = _parse()
    settings = WorkerSettings.model_validate({"worker_token": "not-used-here"})
    for abi in arguments.abis:
        AndroidLinker(abi, settings.stub_dir).prepare()
    sandbox = Sandbox(settings.job_entry, settings.limits)
    started_s = time.perf_counter()
    sandbox.start()
    warm_up_us = round((time.perf_counter() - started_s) * 1e6)
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths = arguments.models or [save_mobilenet_v2(Path(folder))]
            models = {path.name: _promises(sandbox, settings, path, arguments) for path in paths}
    finally:
        sandbox.close()
    request = {"levels": [ONE_LEVEL, FIVE_LEVELS], "abis": arguments.abis}
    request["repeats"] = arguments.repeats
    document = {"machine": describe_machine(), "request": request, "warm_up_us": warm_up_us}
    json.dump(document | {"models": models}, sys.stdout, indent=2)
    print()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--abis", nargs="+", type=Abi, default=[Abi.ARM64_V8A])
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def _promises(
    sandbox: Sandbox, settings: WorkerSettings, model: Path, arguments: argparse.Namespace
) -> dict[str, Any]:
    one = _measure(sandbox, settings, model, arguments, ONE_LEVEL)
    five = _measure(sandbox, settings, model, arguments, FIVE_LEVELS)
    front = ("ingest", "partition", "codegen")
    return {
        "ingest_partition_codegen_us": sum(one["stages_us"][name]["median"] for name in front),
        "five_levels_over_one": five["child_us"]["median"] / one["child_us"]["median"],
        "one_level": one,
        "five_levels": five,
    }


def _measure(
    sandbox: Sandbox,
    settings: WorkerSettings,
    model: Path,
    arguments: argparse.Namespace,
    levels: tuple[int, ...],
) -> dict[str, Any]:
    samples = [
        _compile(sandbox, settings, model, arguments, levels) for _ in range(arguments.repeats)
    ]
    stages = {name: [sample["stages_us"][name] for sample in samples] for name in _stages(samples)}
    return {
        "total_us": _summary([sample["total_us"] for sample in samples]),
        "child_us": _summary([sample["child_us"] for sample in samples]),
        "stages_us": {name: _summary(values) for name, values in stages.items()},
    }


def _stages(samples: list[dict[str, Any]]) -> list[str]:
    return list(samples[0]["stages_us"])


def _summary(values: list[int]) -> dict[str, Any]:
    return {"median": statistics.median(values), "min": min(values), "samples": values}


def _compile(
    sandbox: Sandbox,
    settings: WorkerSettings,
    model: Path,
    arguments: argparse.Namespace,
    levels: tuple[int, ...],
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = _job(settings, Path(shutil.copy(model, folder / "model.onnx")), arguments, levels)
        (folder / "job.json").write_text(job.model_dump_json(), encoding="utf-8")
        started_s = time.perf_counter()
        result = sandbox.run(folder, lambda _: None, threading.Event())
        total_us = round((time.perf_counter() - started_s) * 1e6)
        if isinstance(result.outcome, NnfarmError):
            raise SystemExit(f"{model}: {result.outcome.detail}\n{result.log_tail}")
        outcome = result.outcome
        return {
            "total_us": total_us,
            "child_us": outcome.child_duration_us,
            "stages_us": outcome.stage_durations_us,
        }


def _job(
    settings: WorkerSettings, model: Path, arguments: argparse.Namespace, levels: tuple[int, ...]
) -> JobInput:
    content = model.read_bytes()
    targets = tuple(
        CompileTarget(feature_level=level, abi=abi) for level in levels for abi in arguments.abis
    )
    spec = JobSpec(
        compilation_id="cmp_benchmark",
        attempt=1,
        job_token="",
        model_name=model.stem,
        model_format=ModelFormat.ONNX,
        model_sha256=hashlib.sha256(content).hexdigest(),
        model_size_bytes=len(content),
        dataset_sha256=None,
        targets=targets,
        options=CompileOptions(),
    )
    return JobInput(
        spec=spec,
        model_path=model,
        dataset_path=None,
        stub_dir=settings.stub_dir,
        player_library=settings.player_library,
    )


if __name__ == "__main__":
    main()
