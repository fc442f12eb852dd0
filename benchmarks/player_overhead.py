"""What nnfarm's runtime adds to an inference, over NNAPI calls written by hand in C.

    python -m benchmarks.player_overhead [--elements 16] [--blocks 200] [--runs 200]

Both compute the same model of one addition on the same NNAPI library, the simulator, in turns in
one process, with bursts and reusable executions. By hand is `player_overhead.c`; nnfarm is all of
nnfarm_model_run: TVM's machine, the player, and the output's memory. Target: at most 2 % or 5
microseconds an inference. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from benchmarks.machine import describe_machine
from device_farm.native.toolchain import zig_path
from device_farm.runtime import build as runtime
from device_farm.simulator.build import build_simulator

HOST = "linux-x86_64"
SYMBOL = "nnfarm_nnapi_0"
INCLUDES = ("device_farm/simulator/include", "device_farm/runtime/api")


def main() -> None:
    arguments = _parse()
    bundle, simulator = runtime.build(HOST), build_simulator(HOST)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = _package(folder / "package", bundle, arguments.elements)
        program = _program(folder)
        command = [program, package, bundle / "libnnfarm_runtime.so", simulator]
        command += [arguments.elements, arguments.blocks, arguments.runs]
        output = subprocess.check_output([str(word) for word in command], text=True)
    blocks = [[float(word) for word in line.split()] for line in output.splitlines()]
    json.dump({"machine": describe_machine(), "request": vars(arguments)} | _figures(blocks),
              sys.stdout, indent=2)  # fmt: skip
    print()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--elements", type=int, default=16, help="of the tensors that are added")
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--runs", type=int, default=200, help="inferences of each in a block")
    return parser.parse_args()


def _figures(blocks: list[list[float]]) -> dict[str, Any]:
    """Medians over blocks; differences are of neighbours, which a busy machine slows alike."""
    by_hand, nnfarm = (statistics.median(column) / 1e3 for column in zip(*blocks, strict=True))
    overhead = statistics.median(ours - theirs for theirs, ours in blocks) / 1e3
    return {
        "by_hand_us": round(by_hand, 3),
        "nnfarm_us": round(nnfarm, 3),
        "overhead_us": round(overhead, 3),
        "overhead_percent": round(100 * overhead / by_hand, 1),
    }


def _program(folder: Path) -> Path:
    source, program = Path(__file__).with_suffix(".c"), folder / "player_overhead"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", *(f"-I{path}" for path in INCLUDES)]
    subprocess.run(
        [
            zig_path(),
            "cc",
            "-target",
            "x86_64-linux-gnu.2.28",
            *flags,
            "-o",
            program,
            source,
            "-ldl",
        ],
        check=True,
    )
    return program


def _package(folder: Path, bundle: Path, elements: int) -> Path:
    """An artifact of y = x + c that is one subgraph."""
    folder.mkdir()
    shape = (1, elements)
    (folder / "weights.bin").write_bytes(np.arange(elements, 0, -1, dtype=np.float32).tobytes())
    ctypes.CDLL(str(bundle / "libnnfarm_nnapi.so"), ctypes.RTLD_GLOBAL)
    document = json.dumps(_document(shape, (folder / "weights.bin").stat().st_size))
    module = tvm_ffi.get_global_func("nnfarm.nnapi.module_create")(document)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "float32"))
    with builder.function("main", [x]):
        result = relax.TensorType(shape, "float32")
        call = relax.call_dps_packed(SYMBOL, relax.Tuple([x]), result)
        builder.emit_func_output(builder.emit(call))
    relax_module = builder.get().with_attr("external_mods", [module])
    executable = relax.build(relax_module, tvm.target.Target({"kind": "llvm"}))
    executable.export_library(str(folder / "model.so"))
    tensor = {"dtype": "float32", "shape": list(shape)}
    parts = [("library", "model.so"), ("cpu_twin", "model.so"), ("weights", "weights.bin")]
    manifest = {
        "format": "nnfarm.package",
        "format_version": 1,
        "entry": "main",
        "signature": {"inputs": [{"name": "x"} | tensor], "outputs": [{"name": "y"} | tensor]},
        "subgraph_count": 1,
        "offloaded_count": 1,
        "operation_count": 1,
        "parts": [
            {
                "role": role,
                "path": name,
                "sha256": "0" * 64,
                "size_bytes": (folder / name).stat().st_size,
            }
            for role, name in parts
        ],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def _document(shape: tuple[int, int], weights_size: int) -> dict[str, Any]:
    """The encoded model: ADD without an activation; see docs/reference/encoded-model.md."""
    tensor = {"type": 3, "dims": list(shape)}
    none = {"type": 1, "dims": [], "data": base64.b64encode(bytes(4)).decode()}
    return {
        "format": "nnfarm.nnapi",
        "version": 1,
        "symbol": SYMBOL,
        "level": 1,
        "relaxed": False,
        "weights": {"file": "weights.bin", "size": weights_size, "sha256": "0" * 64},
        "operands": [tensor, tensor | {"offset": 0, "size": weights_size}, none, tensor],
        "operations": [{"code": 0, "name": "ADD", "inputs": [0, 1, 2], "outputs": [3]}],
        "inputs": [0],
        "outputs": [3],
    }


if __name__ == "__main__":
    main()
