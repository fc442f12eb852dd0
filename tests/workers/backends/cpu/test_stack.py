"""Register tiles stay off TVM's workspace: its calls and stores weigh on short sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import tvm
from onnx import helper, numpy_helper

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.models import network
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.stack import PIPELINE
from workers.pipeline.stages.ingest import ingest


def assembly_of(model: onnx.ModelProto, target: tvm.target.Target, folder: Path) -> str:
    onnx.save(model, folder / "model.onnx")
    module = ingest(folder / "model.onnx", ModelFormat.ONNX, {}).graph.module
    lowered, _ = lower_for_cpu(module, target)
    kernels = {
        variable: function.with_attr("global_symbol", variable.name_hint)
        for variable, function in lowered.functions.items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }
    built = tvm.compile(tvm.IRModule(kernels), target, tir_pipeline=PIPELINE)
    text: str = built.mod.inspect_source("asm")
    return text


def test_the_tile_of_a_convolution_needs_no_workspace(
    target: tvm.target.Target, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((96, 16, 1, 1)).astype(np.float32),
        "b": random.standard_normal(96).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    model = network(nodes, {"x": (1, 16, 28, 28)}, constants)
    assembly = assembly_of(model, target, tmp_path)
    assert "TVMBackendParallelLaunch" in assembly
    assert "TVMBackendAllocWorkspace" not in assembly
