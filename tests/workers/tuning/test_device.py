"""Benches for devices: libraries of all ABIs, whose every function computes what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from elftools.elf.elffile import ELFFile
from onnx import helper

from service.contracts.bench import BenchKernel, candidate_function, ruled_function
from service.contracts.jobs import ModelFormat, StageEvent
from service.contracts.targets import Abi
from service.contracts.tuning import KernelKey, TuneOutcome, TuneSpec
from tests.workers.backends.cpu.models import TOLERANCE, close, feeds_of, network, reference
from tests.workers.tuning import networks
from workers.tuning import drawing
from workers.tuning.device import build_bench
from workers.tuning.job import TuneInput

_RUN = """
import sys, numpy as np, tvm
library = tvm.runtime.load_module(sys.argv[1])
given = np.load(sys.argv[2])
results = {}
for name in sys.argv[4:]:
    tensors = [tvm.runtime.tensor(given[key]) for key in ("x", "z", "y")]
    library[name](*tensors)
    results[name] = tensors[-1].numpy()
np.savez(sys.argv[3], **results)
"""


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_CANDIDATES", 3)


def matmul() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "z"], ["y"])
    return network([node], {"x": (64, 96), "z": (96, 80)})


def built(
    model: onnx.ModelProto, folder: Path, stub_dir: Path, abi: Abi, known: tuple[str, ...] = ()
) -> tuple[TuneOutcome, list[StageEvent]]:
    path = folder / "model.onnx"
    onnx.save(model, path)
    spec = TuneSpec(
        tuning_id="tun_1",
        attempt=1,
        job_token="",
        model_format=ModelFormat.ONNX,
        model_sha256="0" * 64,
        time_budget_s=20.0,
        known=tuple(KernelKey(abi=abi, signature=one) for one in known),
        tuned=(),
        bench_abi=abi,
    )
    events: list[StageEvent] = []
    job = TuneInput(spec=spec, model_path=path, stub_dir=stub_dir)
    return build_bench(job, abi, folder, events.append), events


def functions_of(kernel: BenchKernel) -> list[str]:
    return [ruled_function(), *map(candidate_function, range(len(kernel.candidates)))]


def test_every_candidate_loads_and_computes_what_onnx_runtime_does(
    tmp_path: Path, stub_dir: Path
) -> None:
    outcome, events = built(matmul(), tmp_path, stub_dir, Abi.X86_64)
    assert outcome.bench is not None
    [kernel] = outcome.bench.kernels
    assert [tensor.shape for tensor in kernel.tensors] == [(64, 96), (96, 80), (64, 80)]
    assert len(set(kernel.candidates)) == 3
    assert 2_500 <= outcome.bench.time_limit_ms <= 20_000
    assert [events[-1].done, events[-1].total] == [3, 4]  # the device has the last step
    library = tmp_path / kernel.library.path
    (tmp_path / "blobs" / kernel.library.sha256).rename(library)
    assert library.stat().st_size == kernel.library.size_bytes
    results = run(library, feeds_of(matmul()), functions_of(kernel), tmp_path)
    expected = reference(tmp_path / "model.onnx", feeds_of(matmul()))
    assert len(results) == 4
    for result in results.values():
        close(result, expected, TOLERANCE)


def run(
    library: Path, feeds: dict[str, Any], functions: list[str], folder: Path
) -> dict[str, np.ndarray]:
    """Each function over the feeds, in a process that has Bionic's names on glibc's libraries."""
    np.savez(folder / "in.npz", **feeds, y=np.full((64, 80), 7, np.float32))
    for name in ("libc.so", "libm.so"):
        (folder / name).symlink_to(f"/lib/x86_64-linux-gnu/{name}.6")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "TVM_NUM_THREADS": "2"}
    files = [str(library), str(folder / "in.npz"), str(folder / "out.npz")]
    command = [sys.executable, "-c", _RUN, *files, *functions]
    subprocess.run(command, env=environment, check=True, timeout=60)
    with np.load(folder / "out.npz") as results:
        return {name: results[name] for name in results.files}


@pytest.mark.parametrize("abi", [Abi.ARM64_V8A, Abi.ARMEABI_V7A])
def test_libraries_of_phones_have_every_function(tmp_path: Path, stub_dir: Path, abi: Abi) -> None:
    outcome, _ = built(networks.depthwise(), tmp_path, stub_dir, abi)
    assert outcome.bench is not None
    assert outcome.bench.kernels[0].library.path == "kernel_0.so"
    for kernel in outcome.bench.kernels:
        with (tmp_path / "blobs" / kernel.library.sha256).open("rb") as file:
            elf = ELFFile(file)
            symbols = {symbol.name for symbol in elf.get_section_by_name(".dynsym").iter_symbols()}
            machine = elf["e_machine"]
        assert {f"__tvm_ffi_{name}" for name in functions_of(kernel)} <= symbols
        assert machine == {Abi.ARM64_V8A: "EM_AARCH64", Abi.ARMEABI_V7A: "EM_ARM"}[abi]


def test_settled_kernels_are_not_built(tmp_path: Path, stub_dir: Path) -> None:
    outcome, _ = built(matmul(), tmp_path, stub_dir, Abi.X86_64)
    assert outcome.bench is not None
    signatures = tuple(kernel.signature for kernel in outcome.bench.kernels)
    again, _ = built(matmul(), tmp_path, stub_dir, Abi.X86_64, signatures)
    assert again.bench is not None
    assert (again.bench.kernels, again.known_count) == ((), outcome.kernel_count)
