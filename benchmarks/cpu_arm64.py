"""The CPU part for arm64: right under QEMU, and made of vector instructions.

    python -m benchmarks.cpu_arm64 [model ...] [--int8] [--cpu-variant dotprod]

Every model is compiled for arm64-v8a's baseline or a variant of it, played by the runner under
qemu-user and compared with its own runtime; times there mean nothing and are not taken. What the
inner loops are made of is counted in the assembly. Without a model it takes the networks of
`benchmarks.networks` and `benchmarks.cpu_networks`. Prints a table to stderr and one JSON document
to stdout; ends with 1 where a result is wrong. `make native` and qemu-aarch64-static are needed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from benchmarks.cpu_engines import Feeds, feeds_of, reference_run
from benchmarks.cpu_networks import save_networks, save_quantized
from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi, CpuVariant, variants_of
from service.contracts.tensors import ModelSignature
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.cpu.stack import PIPELINE
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.targets import target_for

TRIPLE = "aarch64-linux-gnu"
RUNNER = Path("build/runtime/linux-aarch64/nnfarm_runner")

VECTORS = {
    "fmla.4s": r"\bfmla\s+v\d+\.4s",
    "fmla.8h": r"\bfmla\s+v\d+\.8h",
    "sdot": r"\bsdot\s",
    "smmla": r"\bsmmla\s",
    "smlal": r"\bsmlal2?\s",
}
"""Multiply-adds of vectors, by their names."""

SCALARS = {"fmadd": r"\bfmadd\s"}
"""Multiply-adds of single values. Integers that are multiplied one by one are addresses."""

MAX_ERROR = {"float": 1e-4, "half": 1e-2, "int8": 0.05}
"""Of the largest output, by what is computed: sums in another order, steps of rounding."""


def main() -> None:
    arguments = _parse()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = arguments.models or save_networks(folder)
        if arguments.int8:
            paths = [save_quantized(path, folder) for path in paths]
        found = {path.stem: _checked(path, arguments.cpu_variant, folder) for path in paths}
    print(json.dumps({"cpu_variant": arguments.cpu_variant, "networks": found}, indent=1))
    if not all(result["is_right"] for result in found.values()):
        raise SystemExit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="*", type=Path, help="ONNX or TFLite models")
    parser.add_argument("--int8", action="store_true", help="quantize ONNX models first (QDQ)")
    choices = variants_of(Abi.ARM64_V8A, CpuVariant)
    parser.add_argument("--cpu-variant", type=CpuVariant, choices=choices, default=None)
    return parser.parse_args()


def _checked(path: Path, variant: CpuVariant | None, folder: Path) -> dict[str, Any]:
    target = tvm.target.Target(target_for(Abi.ARM64_V8A, variant) | {"mtriple": TRIPLE})
    kind = ModelFormat.TFLITE if path.suffix == ".tflite" else ModelFormat.ONNX
    model = ingest(path, kind, {})
    lowered, uncovered = lower_for_cpu(model.graph.module, target)
    counts = _counts(lowered, target)
    package = folder / path.stem
    package.mkdir()
    library = package / "model.so"
    executable_of(lowered, target).vm.export_library(str(library), fcompile=_link)
    feeds = feeds_of(path)
    expected = reference_run(path, feeds, 1)()
    mine = _played(package, model.signature, feeds)
    error = max(_error(a, b) for a, b in zip(mine, expected, strict=True))
    limit = MAX_ERROR["half" if variant is CpuVariant.FP16 else _kind(counts)]
    vectors, scalars = (sum(counts[name] for name in names) for names in (VECTORS, SCALARS))
    result = {
        "relative_error": error,
        "is_right": bool(error <= limit),
        "multiply_adds": counts,
        "vector_share": round(vectors / max(vectors + scalars, 1), 4),
        "uncovered": list(uncovered),
    }
    shown = " ".join(f"{name} {count}" for name, count in counts.items() if count)
    verdict = "" if result["is_right"] else "  WRONG"
    print(
        f"{path.stem:28} err {error:.1e}{verdict}  vectors {result['vector_share']:.1%}  {shown}",
        file=sys.stderr,
        flush=True,
    )
    return result


def _kind(counts: Mapping[str, int]) -> str:
    return "int8" if any(counts[name] for name in ("sdot", "smmla", "smlal")) else "float"


def _counts(lowered: tvm.IRModule, target: tvm.target.Target) -> dict[str, int]:
    kernels = {
        variable: function.with_attr("global_symbol", variable.name_hint)
        for variable, function in lowered.functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }
    built = tvm.compile(tvm.IRModule(kernels), target, tir_pipeline=PIPELINE)
    assembly = built.mod.inspect_source("asm")
    return {n: len(re.findall(pattern, assembly)) for n, pattern in (VECTORS | SCALARS).items()}


def _link(output: str, objects: list[str], **_: Any) -> None:
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{TRIPLE}.2.28"]
    # What TVM's runtime defines is found when the library is loaded.
    subprocess.run([*compiler, "-shared", "-Wl,-z,undefs", "-o", output, *objects], check=True)


_link.object_format = "o"  # type: ignore[attr-defined]
_link.get_target_triple = lambda: TRIPLE  # type: ignore[attr-defined]


def _played(package: Path, signature: ModelSignature, feeds: Feeds) -> list[NDArray[Any]]:
    size_bytes = (package / "model.so").stat().st_size
    part = {"path": "model.so", "sha256": "0" * 64, "size_bytes": size_bytes}
    manifest = {
        "format": "nnfarm.package",
        "format_version": 1,
        "entry": "main",
        "signature": signature.model_dump(mode="json"),
        "subgraph_count": 0,
        "offloaded_count": 0,
        "operation_count": 1,
        "parts": [part | {"role": "library"}, part | {"role": "cpu_twin"}],
    }
    (package / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    inputs, outputs = package / "in.safetensors", package / "out.safetensors"
    save_file({name: array[None] for name, array in feeds.items()}, inputs)
    command: list[str | Path] = ["qemu-aarch64-static", "-L", f"/usr/{TRIPLE}", RUNNER]
    command += ["--package", package, "--inputs", inputs, "--outputs", outputs, "--mode", "cpu"]
    command += ["--warmup", "0", "--iterations", "1", "--min-duration-ms", "0"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = load_file(outputs)
    return [found[output.name][0] for output in signature.outputs]


def _error(mine: NDArray[Any], expected: NDArray[Any]) -> float:
    a, b = mine.astype(np.float64), expected.astype(np.float64)
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-12))


if __name__ == "__main__":
    main()
