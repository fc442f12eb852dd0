"""Models compiled with schedules from the search spaces, against ONNX Runtime."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import tvm
from tvm import relax

from service.contracts.jobs import ModelFormat
from service.contracts.kernels import TunedKernel
from tests.workers.backends.cpu.models import TOLERANCE, close, feeds_of, reference
from tests.workers.tuning import networks
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.cpu.tuned import Tunings
from workers.pipeline.stages.ingest import ingest
from workers.tuning.host import host_abi, host_target
from workers.tuning.kernels import Kernel, kernels_of
from workers.tuning.space import draw_traces

ABI = host_abi()
TARGET = host_target(ABI)


def module_of(model: onnx.ModelProto, folder: Path) -> tvm.IRModule:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return ingest(path, ModelFormat.ONNX, {}).graph.module


def kernels(model: onnx.ModelProto, folder: Path) -> tuple[Kernel, ...]:
    return kernels_of(module_of(model, folder), TARGET)


def record(kernel: Kernel, trace: str) -> TunedKernel:
    return TunedKernel(
        record_id=f"ktr_{kernel.name}",
        abi=ABI,
        signature=kernel.signature,
        trace=trace,
        before_us=2.0,
        after_us=1.0,
    )


def check(module: tvm.IRModule, path: Path, model: onnx.ModelProto, tunings: Tunings) -> None:
    lowered, _ = lower_for_cpu(module, TARGET, tunings)
    feeds = feeds_of(model)
    machine = relax.VirtualMachine(executable_of(lowered, TARGET).vm, tvm.cpu())
    ours = machine["main"](*[tvm.runtime.tensor(array) for array in feeds.values()])
    close(ours.numpy(), reference(path, feeds), TOLERANCE)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_drawn_schedule_computes_what_onnx_runtime_does(seed: int, tmp_path: Path) -> None:
    model = networks.convolutions(channels=7 + 4 * seed, size=13 + seed)
    module = module_of(model, tmp_path)
    found = kernels_of(module, TARGET)
    records = [record(k, next(draw_traces(k.function, TARGET, seed))) for k in found]
    tunings = Tunings(records)
    check(module, tmp_path / "model.onnx", model, tunings)
    assert {one.record_id for one in tunings.applied} == {one.record_id for one in records}
    assert tunings.signatures == {kernel.signature for kernel in found}


def test_schedules_are_drawn_once_each_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    [kernel] = [k for k in kernels(networks.depthwise(), tmp_path) if "depthwise" in k.name]
    first, again = (
        list(itertools.islice(draw_traces(kernel.function, TARGET, 5), 12)) for _ in range(2)
    )
    assert first == again
    assert len(set(first)) == 12


def test_a_damaged_record_is_named_and_the_rules_take_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = networks.depthwise()
    module = module_of(model, tmp_path)
    trace = '[[["GetSBlock",[],["nobody","main"],["b0"]]],[]]'
    tunings = Tunings([record(kernel, trace) for kernel in kernels_of(module, TARGET)])
    check(module, tmp_path / "model.onnx", model, tunings)
    assert tunings.applied == []
    assert "ktr_" in caplog.text
    assert "does not fit" in caplog.text


def test_a_signature_is_of_what_is_computed_not_of_names(tmp_path: Path) -> None:
    def signatures(**changes: object) -> set[str]:
        model = networks.convolutions(**changes)  # type: ignore[arg-type]
        return {kernel.signature for kernel in kernels(model, tmp_path)}

    assert signatures() == signatures(name="image")
    assert len(signatures() & signatures(channels=12)) < len(signatures()) / 2


def test_a_signature_is_the_same_in_another_process(tmp_path: Path) -> None:
    found = kernels(networks.depthwise(), tmp_path)
    program = f"""
from pathlib import Path
from tests.workers.tuning import test_tuned as here
for kernel in here.kernels(here.networks.depthwise(), Path({str(tmp_path)!r})):
    print(kernel.signature)
"""
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    assert output.split() == [kernel.signature for kernel in found]
