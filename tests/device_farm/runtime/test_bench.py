"""`nnfarm_runner --bench`: schedules of known speed, wrong ones, and ones that crash."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import te

from device_farm.native import toolchain

SIGNATURE = "5" * 64
SHAPE = [64, 512]
Json = dict[str, Any]


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Path]:
    """Writes a bench of one kernel; `repeats` is how slow the rules' schedule is."""

    def make(repeats: int, candidates: int = 5, **changes: Any) -> Path:
        library = tmp_path / "kernel_0.so"
        flags = [*("-shared", "-fPIC", "-O1", "-fvisibility=hidden"), f"-DRULED_REPEATS={repeats}"]
        include = f"-I{tvm_ffi.libinfo.find_include_path()}"
        dlpack = f"-I{tvm_ffi.libinfo.find_dlpack_include_path()}"
        source = Path(__file__).with_name("bench_kernels.c")
        compiler = [toolchain.zig_path(), "cc", "-target", "x86_64-linux-gnu.2.28"]
        command = [*compiler, *flags, include, dlpack, "-o", str(library), str(source)]
        subprocess.run(command, check=True)
        return write_bench(library, ["float32", "float32"], candidates, **changes)

    return make


def write_bench(file: Path, dtypes: list[str], candidates: int, **changes: Any) -> Path:
    kernel = {
        "signature": SIGNATURE,
        "kernel": "double",
        "calls": 1,
        "tensors": [{"shape": SHAPE, "dtype": dtype} for dtype in dtypes],
        "library": {
            "path": file.name,
            "sha256": "0" * 64,
            "size_bytes": file.stat().st_size,
        },
        "candidates": ["[[],[]]"] * candidates,
        **changes,
    }
    bench = file.with_name("bench.json")
    bench.write_text(json.dumps({"abi": "x86_64", "kernels": [kernel], "time_limit_ms": 20000}))
    return bench


def test_the_faster_schedule_is_found_among_wrong_and_crashing_ones(
    run: Any, bench: Callable[..., Path]
) -> None:
    result = run("--bench", bench(repeats=4))
    assert result.exit_code == 0, result.log
    assert [event["event"] for event in result.events] == ["start", "kernel", "end"]
    kernel = result.one("kernel")
    assert (kernel["signature"], kernel["best"], kernel["rounds"]) == (SIGNATURE, 4, 21)
    assert (kernel["tried"], kernel["crashed"], kernel["differing"]) == (2, 1, 2)
    ratio = kernel["after"]["median_us"] / kernel["before"]["median_us"]
    assert 0.4 < ratio < 0.65
    assert kernel["before"]["spread_us"] >= 0
    assert "candidate 2: SIGABRT" in result.log


def test_a_candidate_that_fails_is_left_out(run: Any, bench: Callable[..., Path]) -> None:
    result = run("--bench", bench(repeats=4, candidates=7))
    kernel = result.one("kernel")
    assert (kernel["best"], kernel["tried"], kernel["crashed"]) == (6, 3, 2)
    assert "no function candidate_5" in result.log


def test_the_rules_schedule_stays_where_none_is_faster(
    run: Any, bench: Callable[..., Path]
) -> None:
    kernel = run("--bench", bench(repeats=1)).one("kernel")
    assert "best" not in kernel
    assert "after" not in kernel
    assert kernel["before"]["median_us"] > 0
    assert (kernel["tried"], kernel["rounds"]) == (2, 3)


def test_a_schedule_that_hangs_ends_with_its_time(run: Any, bench: Callable[..., Path]) -> None:
    # The slow candidate takes longer than all the time there is.
    file = bench(repeats=1_000_000, candidates=1)
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"time_limit_ms": 100}))
    result = run("--bench", file)
    assert result.exit_code == 0, result.log
    assert "within" in result.one("kernel")["error"]


def test_a_kernel_without_code_does_not_stop_the_others(
    run: Any, bench: Callable[..., Path]
) -> None:
    file = bench(repeats=4)
    content = json.loads(file.read_text())
    broken = file.parent / "kernel_1.so"
    broken.write_bytes(b"no library")
    library = {"path": broken.name, "sha256": "0" * 64, "size_bytes": 10}
    content["kernels"].insert(0, content["kernels"][0] | {"library": library})
    file.write_text(json.dumps(content))
    first, second = run("--bench", file).all("kernel")
    assert "kernel_1.so" in first["error"]
    assert second["best"] == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tensors": [{"shape": [1], "dtype": "float31"}]}, "unknown dtype float31"),
        ({"tensors": [{"shape": [2**31 - 1] * 4, "dtype": "int8"}]}, "too large"),
        ({"library": {"path": "../x.so", "size_bytes": 1}}, "not a plain file name"),
        ({"library": {"path": "kernel_0.so", "size_bytes": 1}}, "1 expected"),
        ({"signature": 5}, "a string is expected"),
    ],
)
def test_a_bad_bench_is_refused(run: Any, tmp_path: Path, changes: Json, words: str) -> None:
    library = tmp_path / "kernel_0.so"
    library.write_bytes(b"not looked into")
    result = run("--bench", write_bench(library, [], 1, **changes))
    assert result.exit_code == 3
    assert result.one("error")["code"] == "runner.bad_package"
    assert words in result.one("error")["detail"]


def test_a_bench_and_a_package_are_two_things(run: Any) -> None:
    result = run("--bench", "b.json", "--package", "p")
    assert (result.exit_code, result.one("error")["code"]) == (2, "runner.usage")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32", "int64"])
def test_every_type_is_filled_and_compared(run: Any, tmp_path: Path, dtype: str) -> None:
    library = tmp_path / "kernel_0.so"
    x = te.placeholder(SHAPE, dtype, "x")

    def scheduled(name: str, extra: int) -> Any:
        y = te.compute(SHAPE, lambda i, j: x[i, j] + tvm.tirx.const(extra, dtype), name="y")
        return te.create_prim_func([x, y]).with_attr("global_symbol", name)

    # Integers may be one step apart, floats a thousandth: three is another result for all.
    names = {"ruled": 1, "candidate_0": 1, "candidate_1": 4}
    functions = {name: scheduled(name, extra) for name, extra in names.items()}
    tvm.compile(tvm.IRModule(functions), "llvm").export_library(str(library))
    kernel = run("--bench", write_bench(library, [dtype, dtype], 2)).one("kernel")
    assert (kernel["tried"], kernel["differing"]) == (1, 1)
