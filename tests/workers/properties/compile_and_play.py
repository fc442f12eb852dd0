"""Child of the property tests: the compiler and a phone of every level in one process.

A process of its own, because LD_LIBRARY_PATH and the phone's profile are read when it starts, and
because a crash shall fail one test, not the test run.

    python -m tests.workers.properties.compile_and_play PLAYER

Reads one JSON request a line from standard input, {"folder", "level", "accelerators"}; the folder
has model.onnx and inputs.npz. Answers with one line, the members of phone.Answer, or {"error",
"trace"}.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from service.contracts.jobs import Precision
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.registry import make_backend
from workers.frontends.onnx import import_onnx
from workers.graph.graph import Graph, dtype_of, static_shape
from workers.pipeline.stages.codegen import codegen
from workers.pipeline.stages.ingest import normalise
from workers.pipeline.stages.partition import Partition, partition

_HOST = tvm.target.Target({"kind": "llvm"})


@lru_cache(maxsize=2)  # the levels of one model come one after the other
def _graph(path: str) -> Graph:
    return normalise(import_onnx(Path(path)).graph)


def _answer(folder: Path, level: int, accelerators: Sequence[str], player: Path) -> dict[str, Any]:
    # As the phone's player is told where the package is, and to which device it must keep.
    tvm_ffi.get_global_func("nnfarm.nnapi.set_package_dir")(str(folder))
    tvm_ffi.get_global_func("nnfarm.nnapi.set_device")(f"level-{level}")
    backend = make_backend(accelerators, Precision.FLOAT32)
    split = partition(_graph(str(folder / "model.onnx")), backend, level)
    module, encoding = codegen(split, backend, player)
    for name, data in encoding.files.items():
        (folder / name).write_bytes(data)
    documents = [region.module_bytes.decode() for region in encoding.regions]
    answer: dict[str, Any] = {
        "operations": [op.op_type for op in split.report.operations],
        "rejected": [op.op_type for op in split.report.operations if op.rejection is not None],
        "needed_levels": [region.needed_level for region in encoding.regions],
        "lowered": [name for r in split.regions for u in r.units for name in u.operations],
        "documents": documents,
        "accelerators": [op.accelerator for op in split.report.operations],
    }
    if not documents:
        return answer  # nothing to compare: the CPU's own tests are elsewhere
    outputs = folder / f"outputs-{level}.npz"
    np.savez(outputs, *_run(module, split, folder))
    return answer | {"outputs": str(outputs)}


def _run(module: tvm.IRModule, split: Partition, folder: Path) -> list[np.ndarray]:
    """The whole model: regions on NNAPI, the rest as the product compiles it, for this CPU."""
    with np.load(folder / "inputs.npz") as arrays:
        values = {var: tvm.runtime.tensor(arrays[var.name]) for var in split.graph.inputs}
    region = split.regions[0]
    if region.outputs == split.graph.outputs and set(region.inputs) <= set(values):
        # Nothing is left for the CPU: no need of LLVM to call the one subgraph.
        (subgraph,) = module.attrs["external_mods"]
        results = [
            tvm.runtime.tensor(np.zeros(static_shape(var) or (), dtype_of(var)))
            for var in region.outputs
        ]
        subgraph.get_function(region.symbol)(*(values[v] for v in region.inputs), *results)
        return [tensor.numpy() for tensor in results]
    lowered, _ = lower_for_cpu(module, _HOST)
    result = relax.VirtualMachine(relax.build(lowered, _HOST), tvm.cpu())["main"](*values.values())
    tensors = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
    return [tensor.numpy() for tensor in tensors]


def main(player: Path) -> None:
    """Answer requests until standard input ends."""
    # What the compiler prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    ctypes.CDLL(str(player), ctypes.RTLD_GLOBAL)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(
                Path(request["folder"]), request["level"], request["accelerators"], player
            )
        except Exception as error:
            answer = {"error": f"{error}", "trace": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
