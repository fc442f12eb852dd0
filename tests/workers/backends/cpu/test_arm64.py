"""Kernels for arm64 under QEMU against ONNX Runtime, and what their inner loops are made of."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import helper, numpy_helper
from safetensors.numpy import load_file, save_file

from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi, CpuVariant
from tests.conftest import BUILD
from tests.workers.backends.cpu.models import Array, close, feeds_of, network, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.targets import target_for

pytestmark = pytest.mark.arm64

TRIPLE = "aarch64-linux-gnu"


def values(*shape: int) -> Array:
    return (np.random.default_rng(4).standard_normal(shape) * 0.3).astype(np.float32)


def every_family(is_quantized: bool, channels: int = 21) -> onnx.ModelProto:
    """Convolution, SiLU, depthwise, pool, softmax of an attention, dense."""
    tensors: dict[str, Array] = {
        "w0": values(channels, 3, 3, 3), "b0": values(channels),
        "w1": values(channels, 1, 3, 3),
        "w2": values(16, channels, 1, 1), "w3": values(16, 10), "b3": values(10),
        "rows": np.array([1, 16, 36], np.int64),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1] * 4),
        helper.make_node("Sigmoid", ["c0"], ["s0"]),
        helper.make_node("Mul", ["c0", "s0"], ["m0"]),
        helper.make_node("Conv", ["m0", "w1"], ["c1"], pads=[1] * 4, group=channels),
        helper.make_node("MaxPool", ["c1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "weight2" if is_quantized else "w2"], ["c2"]),
        helper.make_node("Reshape", ["c2", "rows"], ["r2"]),
        helper.make_node("Transpose", ["r2"], ["t2"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t2", "r2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["soft"], axis=-1),
        helper.make_node("MatMul", ["soft", "t2"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "w3"], ["d3"]),
        helper.make_node("Add", ["d3", "b3"], ["y"]),
    ]
    if is_quantized:
        tensors |= {"s": np.float32(0.02), "z": np.uint8(128), "ws": np.float32(0.01)}
        tensors |= {"wz": np.int8(0), "w2": np.rint(tensors["w2"] * 100).astype(np.int8)}
        nodes[5:6] = [
            helper.make_node("QuantizeLinear", ["p1", "s", "z"], ["q1"]),
            helper.make_node("DequantizeLinear", ["q1", "s", "z"], ["d1"]),
            helper.make_node("DequantizeLinear", ["w2", "ws", "wz"], ["weight2"]),
            helper.make_node("Conv", ["d1", "weight2"], ["c2"]),
        ]
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in tensors.items()]
    return network(nodes, {"x": (1, 3, 12, 12)}, constants)


def every_own_convolution() -> onnx.ModelProto:
    """Winograd's filtering, joined groups, a concat of channels, a transposed convolution."""
    tensors = {
        "w0": values(32, 3, 3, 3), "w1": values(32, 32, 3, 3), "w2": values(24, 8, 3, 3),
        "w3": values(56, 8, 3, 3),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1] * 4),
        helper.make_node("Conv", ["c0", "w1"], ["c1"], pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1] * 4, group=4),
        helper.make_node("Concat", ["r1", "c2"], ["both"], axis=1),
        helper.make_node("ConvTranspose", ["both", "w3"], ["y"], strides=[2, 2], pads=[1] * 4),
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    return network(nodes, {"x": (1, 3, 12, 12)}, constants)


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
            "inputs": [{"name": "x", "dtype": "float32", "shape": list(data.shape)}],
            "outputs": [{"name": "y", "dtype": "float32", "shape": list(output.shape)}],
        },
        "subgraph_count": 0,
        "offloaded_count": 0,
        "operation_count": 1,
        "parts": [part | {"role": "library"}, part | {"role": "cpu_twin"}],
    }


@pytest.mark.parametrize(
    ("is_quantized", "variant"),
    [(False, None), (True, None), (True, CpuVariant.DOTPROD), (True, CpuVariant.I8MM)],
    ids=["float32", "int8", "int8-dotprod", "int8-i8mm"],
)
def test_a_network_of_every_family(
    tmp_path: Path, is_quantized: bool, variant: CpuVariant | None
) -> None:
    play(every_family(is_quantized), 0.02 if is_quantized else 2e-5, tmp_path, variant)


def test_convolutions_of_our_own(tmp_path: Path) -> None:
    play(every_own_convolution(), 2e-5, tmp_path)


def test_lstm(tmp_path: Path) -> None:
    tensors = {"w": values(2, 80, 6), "r": values(2, 80, 20), "b": values(2, 160)}
    node = helper.make_node(
        "LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=20, direction="bidirectional"
    )
    constants = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    play(network([node], {"x": (7, 2, 6)}, constants), 2e-5, tmp_path)


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
    source: str = tvm.compile(module, target(variant)).mod.inspect_source("asm")
    return source


def test_integer_sums_are_dot_products_where_the_core_has_them(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(every_family(is_quantized=True), path)
    assert len(re.findall(r"\bsdot\s", assembly_of(path, CpuVariant.DOTPROD))) > 20
    assert "sdot" not in assembly_of(path)


def test_inner_loops_are_vector_multiply_adds(tmp_path: Path) -> None:
    """Nearly all multiply-adds; an epilogue over odd channels would be scalar, its sum not."""
    path = tmp_path / "model.onnx"
    onnx.save(every_family(is_quantized=False, channels=24), path)
    assembly = assembly_of(path)
    vector = len(re.findall(r"\bfmla\s+v\d+\.4s", assembly))
    scalar = len(re.findall(r"\bfmadd\s+s\d+", assembly))
    assert vector > 100
    assert vector > 20 * scalar
