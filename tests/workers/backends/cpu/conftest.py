"""Compiles small ONNX models for the CPU alone and compares with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
import tvm
from tvm import relax
from tvm.target import codegen

from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi
from tests.workers.backends.cpu.models import TOLERANCE, close, feeds_of, reference
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.targets import target_for

Check = Callable[..., tuple[str, ...]]


@pytest.fixture(scope="session", params=["baseline", "host"])
def target(request: pytest.FixtureRequest) -> tvm.target.Target:
    """What every Android x86-64 device has, and all that this machine has."""
    triple = {"mtriple": codegen.llvm_get_system_triple()}
    if request.param == "baseline":
        return tvm.target.Target(target_for(Abi.X86_64) | triple)
    return tvm.target.Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu()} | triple)


@pytest.fixture(scope="session")
def check(target: tvm.target.Target, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Compile, run, compare; returns the names of kernels that no rule covered."""
    folder = tmp_path_factory.mktemp("cpu")

    def run(model: onnx.ModelProto, tolerance: float = TOLERANCE) -> tuple[str, ...]:
        path = folder / "model.onnx"
        onnx.save(model, path)
        feeds = feeds_of(model)
        lowered, uncovered = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
        machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
        ours = machine["main"](*[tvm.runtime.tensor(a) for a in feeds.values()])
        close(ours.numpy(), reference(path, feeds), tolerance)
        return uncovered

    return run
