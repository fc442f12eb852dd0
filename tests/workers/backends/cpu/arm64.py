"""Kernels for arm64: played under QEMU, and their assembly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
import tvm
from safetensors.numpy import load_file, save_file

from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi, CpuVariant
from tests.conftest import BUILD
from tests.workers.backends.cpu.models import Array, close, feeds_of, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.cpu.stack import PIPELINE
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.targets import target_for

TRIPLE = "aarch64-linux-gnu"


def target(variant: CpuVariant | None = None) -> tvm.target.Target:
    """arm64-v8a's, for Linux, so that QEMU runs it."""
    return tvm.target.Target(target_for(Abi.ARM64_V8A, variant) | {"mtriple": TRIPLE})


def lowered(path: Path, variant: CpuVariant | None = None) -> tvm.IRModule:
    graph = ingest(path, ModelFormat.ONNX, {}).graph
    module, uncovered = lower_for_cpu(graph.module, target(variant))
    assert uncovered == ()
    return module


def link(output: str, objects: list[str], **_: Any) -> None:
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", f"{TRIPLE}.2.28"]
    # What TVM's runtime defines is found when the library is loaded.
    subprocess.run([*compiler, "-shared", "-Wl,-z,undefs", "-o", output, *objects], check=True)


link.object_format = "o"  # type: ignore[attr-defined]
link.get_target_triple = lambda: TRIPLE  # type: ignore[attr-defined]


def manifest(size_bytes: int, data: Array, output: Array) -> dict[str, Any]:
    part = {"path": "model.so", "sha256": "0" * 64, "size_bytes": size_bytes}
    return {
        "format": "nnfarm.package",
        "format_version": 1,
        "entry": "main",
        "signature": {
            "inputs": [{"name": "x", "dtype": str(data.dtype), "shape": list(data.shape)}],
            "outputs": [{"name": "y", "dtype": str(output.dtype), "shape": list(output.shape)}],
        },
        "subgraph_count": 0,
        "offloaded_count": 0,
        "operation_count": 1,
        "parts": [part | {"role": "library"}, part | {"role": "cpu_twin"}],
    }


def play(
    model: onnx.ModelProto, tolerance: float, tmp_path: Path, variant: CpuVariant | None = None
) -> None:
    """Compiles for arm64, plays under QEMU and compares."""
    runner = BUILD / "runtime" / "linux-aarch64" / "nnfarm_runner"
    if not runner.exists():
        pytest.fail("the arm64 runner is not built: run `make native`", pytrace=False)
    path, library = tmp_path / "model.onnx", tmp_path / "model.so"
    onnx.save(model, path)
    executable = executable_of(lowered(path, variant), target(variant)).vm
    executable.export_library(str(library), fcompile=link)
    feeds = feeds_of(model)
    expected = reference(path, feeds)
    (tmp_path / "manifest.json").write_text(
        json.dumps(manifest(library.stat().st_size, feeds["x"], expected)), "utf-8"
    )
    inputs, outputs = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file({"x": feeds["x"][None]}, inputs)
    command = ["qemu-aarch64-static", "-L", f"/usr/{TRIPLE}", str(runner), "--mode", "cpu"]
    command += ["--package", str(tmp_path), "--inputs", str(inputs), "--outputs", str(outputs)]
    command += ["--warmup", "0", "--iterations", "1", "--min-duration-ms", "0", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    close(load_file(outputs)["y"][0], expected, tolerance)


def assembly_of(path: Path, variant: CpuVariant | None = None) -> str:
    kernels = [
        (variable, function)
        for variable, function in lowered(path, variant).functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    ]
    module = tvm.IRModule({v: f.with_attr("global_symbol", v.name_hint) for v, f in kernels})
    built = tvm.compile(module, target(variant), tir_pipeline=PIPELINE)
    source: str = built.mod.inspect_source("asm")
    return source
