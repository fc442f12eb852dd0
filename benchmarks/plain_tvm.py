"""The path TVM itself offers, measured: `partition_for_nnapi` and `relax.build`, as a program.

    python -m benchmarks.plain_tvm model.onnx 7 arm64-v8a

TVM's NNAPI codegen is not in its wheel, so there is no codegen stage, and what is built is the
whole model for the CPU with TVM's default passes, which is also what our twin is. Prints JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import onnx
import tvm
from tvm import relax
from tvm.relax.backend.contrib.nnapi import partition_for_nnapi
from tvm.relax.frontend.onnx import from_onnx

from benchmarks.usage import Usage
from service.contracts.targets import Abi
from workers.pipeline.stages.build import link
from workers.settings import WorkerSettings
from workers.toolchain.targets import target_for


def main(path: Path, feature_level: int, abi: Abi) -> None:
    """Compile a model file as TVM's own documentation does, and print what it took."""
    usage = Usage()
    usage.begin()
    module = _imported(path)
    usage.end("ingest")
    partition_for_nnapi(module, feature_level)
    usage.end("partition")
    executable = relax.build(module, tvm.target.Target(target_for(abi)))
    usage.end("build")
    stubs = WorkerSettings.model_validate({"worker_token": "not-used-here"}).stub_dir
    with tempfile.TemporaryDirectory() as folder:
        link(executable, abi, stubs, Path(folder) / "model.so")
    usage.end("link")
    print(json.dumps(usage.to_json()))


def _imported(path: Path) -> tvm.IRModule:
    passes = [
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.FoldConstant(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.DeadCodeElimination(),
    ]
    module = from_onnx(onnx.load(path), keep_params_in_input=False)
    return tvm.transform.Sequential(passes)(module)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Abi(sys.argv[3]))
