"""float16 networks, computed in float32 and, where there is arithmetic for it, in float16."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
import tvm

from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi, CpuVariant
from tests.workers.backends.cpu.arm64 import assembly_of, play
from tests.workers.backends.cpu.conftest import Check
from tests.workers.backends.cpu.halves import half_model, long_sums
from workers.backends.cpu.build import lower_for_cpu
from workers.graph.graph import constant_value
from workers.pipeline.stages.ingest import ingest
from workers.toolchain.targets import target_for

TOLERANCE = 2e-3
"""Of the largest output: two roundings to eleven digits."""


def test_a_network_of_halves(check: Check) -> None:
    assert check(half_model(), TOLERANCE) == ()


def lowered(path: Path, abi: Abi, variant: CpuVariant | None) -> tvm.IRModule:
    onnx.save(half_model(), path)
    target = tvm.target.Target(target_for(abi, variant))
    return lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)[0]


@pytest.mark.parametrize(
    ("abi", "variant", "dtype"),
    [
        (Abi.X86_64, None, "float32"),
        (Abi.X86_64, CpuVariant.AVX2, "float16"),
        (Abi.ARM64_V8A, None, "float16"),
    ],
)
def test_weights_stay_halves_where_the_processor_converts_them(
    tmp_path: Path, abi: Abi, variant: CpuVariant | None, dtype: str
) -> None:
    module = lowered(tmp_path / "model.onnx", abi, variant)
    calls = [
        binding.value
        for block in module["main"].body.blocks
        for binding in block.bindings
        if getattr(getattr(binding.value, "op", None), "name", "") == "relax.call_tir"
    ]
    operands = [operand for call in calls for operand in call.args[1].fields]
    constants = [array for one in operands if (array := constant_value(one)) is not None]
    large = {str(array.dtype) for array in constants if array.size >= 160}
    assert large == {dtype}


@pytest.mark.arm64
@pytest.mark.parametrize("depth", [21, 512])
def test_sums_of_halves(tmp_path: Path, depth: int) -> None:
    """In float16 a sum of 4,608 products in one would be wrong by a hundredth."""
    play(long_sums(depth), TOLERANCE, tmp_path, CpuVariant.FP16)


@pytest.mark.arm64
def test_a_network_with_arithmetic_on_halves(tmp_path: Path) -> None:
    play(half_model(), TOLERANCE, tmp_path, CpuVariant.FP16)


def test_inner_loops_multiply_registers_of_halves(tmp_path: Path) -> None:
    onnx.save(long_sums(64), tmp_path / "model.onnx")
    assembly = assembly_of(tmp_path / "model.onnx", CpuVariant.FP16)
    assert len(re.findall(r"\bfmla\s+v\d+\.8h", assembly)) > 50
    assert not re.search(r"\bfmla\s+v\d+\.4[hs]", assembly)


def test_arm64_computes_on_floats(tmp_path: Path) -> None:
    onnx.save(half_model(), tmp_path / "model.onnx")
    assembly = assembly_of(tmp_path / "model.onnx")
    assert len(re.findall(r"\bfmla\s+v\d+\.4s", assembly)) > 50
    assert len(re.findall(r"\bfcvtl2?\s", assembly)) > 2  # weights and the input
    assert not re.search(r"\bb[lr]*\s+__(extend|trunc)", assembly)
