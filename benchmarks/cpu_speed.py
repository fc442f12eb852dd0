"""What stays on the CPU against ONNX Runtime or LiteRT, interleaved in one process.

    python -m benchmarks.cpu_speed [model ...] --cpu host --threads 1 2

`--operations` measures one small network for each class of operations, `--int8` what ONNX Runtime's
tool makes of the networks (QDQ). A TFLite model is compared with LiteRT, others with ONNX Runtime.
Without a model it takes the networks of `benchmarks.networks` and `benchmarks.cpu_networks`. Ours
and TVM's default lowering get the same normalised graph. `--cpu host` compiles for this machine's
processor, which is what the others' kernels are chosen for; `--cpu baseline` for the features that
every Android x86-64 device has. Outputs are compared before anything is timed. Prints a table to
stderr and one JSON document to stdout.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray
from tvm import relax
from tvm.target import codegen

from benchmarks.cpu_engines import Feeds, Run, feeds_of, reference_name, reference_run, tvm_run
from benchmarks.cpu_networks import save_networks, save_quantized
from benchmarks.cpu_operations import save_operations
from benchmarks.machine import describe_machine
from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.targets import target_for

MAX_ERROR = 1e-3
"""Of the largest output: float32 sums in another order, not another result."""

MAX_QUANTIZED_ERROR = 0.05
"""Of the largest output: a step of rounding here and there, carried through all layers."""


def main() -> None:
    arguments = _parse()
    if len(arguments.threads) > 1:
        _one_after_the_other(arguments.threads)
        return
    # Pinned to cores, TVM's threads would pin this process, and with it the other engine's.
    [threads] = arguments.threads
    os.environ |= {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0"}
    target = tvm.target.Target(_target(arguments.cpu))
    with tempfile.TemporaryDirectory() as folder:
        paths = _paths(arguments, Path(folder))
        networks = {path.stem: _measure(path, target, arguments) for path in paths}
    means = {key: _geometric_mean(networks, key) for key in map(_key, arguments.threads)}
    document = {
        "machine": describe_machine(),
        "target": arguments.cpu,
        "ratio": "ours / the format's own runtime, of least times; medians are beside them",
        "networks": networks,
        "geometric_mean": means,
    }
    worst = {key: _worst(networks, key) for key in means}
    document |= {"worst": worst}
    print("geometric mean:", means, "worst:", worst, file=sys.stderr)
    json.dump(document, sys.stdout, indent=2)
    print()


def _one_after_the_other(counts: Sequence[int]) -> None:
    """A process for each number of threads: TVM's pool has the size it begins with."""
    given = sys.argv[1:]
    at = given.index("--threads") if "--threads" in given else len(given)
    rest = given[:at] + given[at + 1 + (len(counts) if at < len(given) else 0) :]
    documents = []
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.cpu_speed", *rest, "--threads", str(count)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        documents.append(json.loads(done.stdout))
    json.dump(documents, sys.stdout, indent=2)
    print()


def _paths(arguments: argparse.Namespace, folder: Path) -> list[Path]:
    paths: list[Path] = arguments.models
    if arguments.operations:
        paths = save_operations(folder)
    elif not paths:
        paths = save_networks(folder)
    return [save_quantized(path, folder) for path in paths] if arguments.int8 else paths


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--cpu", choices=("host", "baseline"), default="host")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="a network and thread count")
    parser.add_argument("--int8", action="store_true", help="quantize ONNX networks first")
    parser.add_argument("--operations", action="store_true", help="classes of operations instead")
    parser.add_argument("--tvm-default", action="store_true", help="time TVM's own lowering, slow")
    return parser.parse_args()


def _target(cpu: str) -> dict[str, Any]:
    baseline = target_for(Abi.X86_64)
    if cpu == "baseline":
        return baseline | {"mtriple": codegen.llvm_get_system_triple()}
    return {
        "kind": "llvm",
        "mtriple": codegen.llvm_get_system_triple(),
        "mcpu": codegen.llvm_get_system_cpu(),
    }


def _measure(
    path: Path, target: tvm.target.Target, arguments: argparse.Namespace
) -> dict[str, Any]:
    feeds = feeds_of(path)
    module = ingest(path, _format(path), {}).graph.module
    started_s = time.process_time()
    lowered, uncovered = lower_for_cpu(module, target)
    runs = {"ours": tvm_run(executable_of(lowered, target).vm, feeds)}
    result: dict[str, Any] = {"compile_cpu_s": round(time.process_time() - started_s, 2)}
    result["uncovered"] = uncovered
    result["relative_error"] = _checked_error(path, runs["ours"], feeds)
    if arguments.tvm_default:
        executable = relax.build(relax.get_pipeline("zero")(module), target)
        runs["tvm_default"] = tvm_run(executable, feeds)
    for threads in arguments.threads:
        runs[reference_name(path)] = reference_run(path, feeds, threads)
        times = _interleaved(runs, arguments.seconds)
        times["ratio"] = times["ours_ms"] / times[f"{reference_name(path)}_ms"]
        result[_key(threads)] = {k: round(v, 3) for k, v in times.items()}
        _print(path.stem, threads, result)
    return result


def _key(threads: int) -> str:
    return f"threads_{threads}"


def _checked_error(path: Path, ours: Run, feeds: Feeds) -> float:
    error = _relative_error(ours(), reference_run(path, feeds, 1)())
    if error > (MAX_QUANTIZED_ERROR if _is_quantized(path) else MAX_ERROR):
        raise SystemExit(f"{path.name}: outputs differ by {error:.1e} of the largest")
    return error


def _is_quantized(path: Path) -> bool:
    if path.suffix == ".tflite":
        tensors = Interpreter(str(path)).get_tensor_details()
        return any(tensor["quantization"][0] for tensor in tensors)
    return any(node.op_type == "QuantizeLinear" for node in onnx.load(path).graph.node)


def _format(path: Path) -> ModelFormat:
    return ModelFormat.TFLITE if path.suffix == ".tflite" else ModelFormat.ONNX


_LABELS = {"onnxruntime": "ORT", "litert": "LiteRT"}


def _print(name: str, threads: int, result: Mapping[str, Any]) -> None:
    times = result[_key(threads)]
    reference = next(name for name in _LABELS if f"{name}_ms" in times)
    default = f"  TVM {times['tvm_default_ms']:9.1f}" if "tvm_default_ms" in times else ""
    print(
        f"{name:24} {threads} thr  ours {times['ours_ms']:8.2f}"
        f"  {_LABELS[reference]} {times[f'{reference}_ms']:8.2f}"
        f"  ratio {times['ratio']:5.2f}{default}  compile {result['compile_cpu_s']:5.1f} s"
        f"  err {result['relative_error']:.0e}  uncovered {len(result['uncovered'])}",
        file=sys.stderr,
        flush=True,
    )


def _relative_error(ours: list[NDArray[Any]], reference: list[NDArray[Any]]) -> float:
    pairs = zip(ours, reference, strict=True)
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-12)) for a, b in pairs)


def _interleaved(runs: Mapping[str, Run], seconds: float) -> dict[str, float]:
    """Least and median milliseconds of each.

    Turns of a few calls, the first of a turn only warms up. On a machine with other work the least
    time says what the code takes, the median what the neighbours took.
    """
    samples: dict[str, list[float]] = {name: [] for name in runs}
    deadline_s = time.perf_counter() + seconds
    while time.perf_counter() < deadline_s or len(samples["ours"]) < 6:
        for name, run in runs.items():
            calls = 1 if name == "tvm_default" else 4
            for call in range(calls):
                started_s = time.perf_counter()
                run()
                if call or calls == 1:
                    samples[name].append((time.perf_counter() - started_s) * 1e3)
    least = {f"{name}_ms": min(values) for name, values in samples.items()}
    medians = {f"{name}_median_ms": statistics.median(v) for name, v in samples.items()}
    return least | medians


def _worst(networks: Mapping[str, Mapping[str, Any]], key: str) -> str:
    return max(networks, key=lambda name: float(networks[name][key]["ratio"]))


def _geometric_mean(networks: Mapping[str, Mapping[str, Any]], key: str) -> float:
    logarithms = [math.log(network[key]["ratio"]) for network in networks.values()]
    return round(math.exp(statistics.fmean(logarithms)), 3)


if __name__ == "__main__":
    main()
