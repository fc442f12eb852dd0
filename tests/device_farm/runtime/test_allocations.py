"""In a steady state a computation allocates nothing, which an allocator of our own counts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_farm.runtime import tvm_wheels

HERE = Path(__file__).parent
RUNS = 100
pytestmark = pytest.mark.gcc


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Path:
    made = tmp_path_factory.mktemp("count") / "count_allocations"
    tvm_ffi = tvm_wheels.package_dir("tvm_ffi")
    includes = (f"-I{tvm_ffi}/include", f"-I{tvm_ffi}/3rdparty/dlpack/include")
    link = (f"-L{bundle}", "-Wl,--no-as-needed", "-lnnfarm_nnapi", "-ltvm_ffi", "-ldl")
    command = ["gcc", "-std=gnu11", "-O1", *includes, HERE / "count_allocations.c", "-o", made]
    subprocess.run([*command, *link, f"-Wl,-rpath,{bundle}"], check=True)
    return made


@pytest.fixture
def folder(encoded: dict[str, Any], tmp_path: Path) -> Path:
    """One addition of the weights' file, for which the NNAPI library itself allocates nothing."""
    encoded["operations"] = encoded["operations"][:1]
    encoded["outputs"] = [3]
    encoded["operands"] = encoded["operands"][:4]
    (tmp_path / "model.json").write_text(json.dumps(encoded))
    (tmp_path / "weights.bin").write_bytes(np.arange(32, dtype=np.float32).tobytes())
    return tmp_path


@pytest.fixture
def count(program: Path, folder: Path, fault_library: Callable[[int], Path]) -> Any:
    def counted(symbols: int, *settings: str) -> int:
        command = [program, folder / "model.json", fault_library(symbols), folder, *settings]
        finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert finished.returncode == 0, finished.stderr
        return int(finished.stdout)

    return counted


@pytest.mark.parametrize("buffers", ["pointer", "memory"])
@pytest.mark.parametrize("compute", ["auto", "burst", "sync"])
def test_nothing_is_allocated(count: Any, compute: str, buffers: str) -> None:
    assert count(5, "compute", compute, "buffers", buffers) == 0


@pytest.mark.parametrize(("symbols", "of_nnapi"), [(3, 1), (1, 2)])
def test_below_level_5_nnapi_allocates_its_objects_only(
    count: Any, symbols: int, of_nnapi: int
) -> None:
    """An execution a computation; at level 1 an event, too."""
    assert count(symbols) == of_nnapi * RUNS
