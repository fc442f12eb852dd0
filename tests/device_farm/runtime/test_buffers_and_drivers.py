"""Where tensors lie while NNAPI computes, and support-library drivers in the library's place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from device_farm.simulator.build import build_simulator

SYMBOL = "nnfarm_nnapi_0"
SHAPE = (4, 8)
MORE = np.arange(32, dtype=np.float32).reshape(SHAPE) + np.float32(0.5)

Array = np.ndarray[Any, Any]
Make = Callable[..., Callable[..., None]]


def option(name: str, value: str) -> None:
    tvm_ffi.get_global_func("nnfarm.nnapi.set_option")(name, value)


@pytest.fixture
def make(player: Any, encoded: Any, tmp_path: Path) -> Iterator[Make]:
    """The function of `encoded_add` for a library and options."""
    (tmp_path / "weights.bin").write_bytes(np.arange(32, dtype=np.float32).tobytes())

    def subgraph(library: Path, **options: str) -> Callable[..., None]:
        tvm_ffi.get_global_func("nnfarm.nnapi.set_library")(str(library))
        tvm_ffi.get_global_func("nnfarm.nnapi.set_package_dir")(str(tmp_path))
        for name, value in options.items():
            option(name.replace("_", "-"), value)
        function = player(encoded).get_function(SYMBOL)
        return lambda *arrays: function(*(tvm_ffi.from_dlpack(array) for array in arrays))

    yield subgraph
    tvm_ffi.get_global_func("nnfarm.nnapi.reset_options")()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[str]]:
    """Words of the fault library's log."""
    path = tmp_path / "calls"
    monkeypatch.setenv("FAULT_LOG", str(path))
    return lambda: path.read_text().split()


def expect_sums(add: Callable[..., None], runs: int = 6) -> None:
    """Other tensors each time: nothing may stay from the call before."""
    kept: list[Array] = []
    for run in range(runs):
        x, out = np.full(SHAPE, run, np.float32), np.zeros(SHAPE, np.float32)
        kept += [x, out]
        add(x, out)
        np.testing.assert_array_equal(out, MORE + np.float32(run))


@pytest.mark.parametrize("compute", ["auto", "burst", "sync", "async"])
@pytest.mark.parametrize("buffers", ["pointer", "memory"])
def test_the_same_sums_wherever_tensors_lie(make: Make, buffers: str, compute: str) -> None:
    expect_sums(make(build_simulator("linux-x86_64"), buffers=buffers, compute=compute))


@pytest.mark.parametrize("symbols", [1, 4, 5])
def test_memory_is_made_once_and_executions_on_it_are_kept(
    make: Make, fault_library: Any, log: Callable[[], list[str]], symbols: int
) -> None:
    add = make(fault_library(symbols), buffers="memory")
    expect_sums(add, runs=6)
    words = log()
    executions = 1 if symbols == 5 else 6
    assert words.count("ANeuralNetworksExecution_setInputFromMemory") == executions
    assert words.count("ANeuralNetworksExecution_setOutputFromMemory") == executions
    assert "ANeuralNetworksExecution_setInput" not in words
    weights = 1 if symbols >= 3 else 0
    assert words.count("ANeuralNetworksMemory_createFromFd") == 1 + weights


@pytest.mark.parametrize("buffers", ["pointer", "memory"])
def test_threads_share_a_subgraph_and_have_their_own(make: Make, buffers: str) -> None:
    library = build_simulator("linux-x86_64")
    shared = make(library, buffers=buffers)
    own = [make(library, buffers=buffers) for _ in range(4)]
    with ThreadPoolExecutor(len(own)) as pool:
        for finished in [pool.submit(expect_sums, add, 50) for add in own + 4 * [shared]]:
            finished.result()


def test_shapes_known_at_run_time_grow_the_memory(make: Make, encoded: Any) -> None:
    for operand in encoded["operands"]:
        if operand["dims"] == list(SHAPE) and not {"data", "offset"} & operand.keys():
            operand["dims"] = [0, 8]
    encoded["operations"] = [
        {"code": 0, "name": "ADD", "inputs": [0, 0, 2], "outputs": [5]},
    ]
    double = make(build_simulator("linux-x86_64"), buffers="memory")
    for rows in (2, 700, 3):
        x, out = np.full((rows, 8), rows, np.float32), np.zeros((rows, 8), np.float32)
        double(x, out)
        np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize(
    "function", ["Memory_createFromFd", "Execution_setInputFromMemory", "Execution_burstCompute"]
)
def test_a_failure_leaves_the_subgraph_usable(
    make: Make,
    fault_library: Any,
    encoded: Any,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
) -> None:
    del encoded["operands"][1]["offset"], encoded["operands"][1]["size"], encoded["weights"]
    encoded["operands"][1]["data"] = encoded["operands"][4]["data"]
    add = make(fault_library(), buffers="memory")
    x, out = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    monkeypatch.setenv("FAULT_FAIL", f"ANeuralNetworks{function}=5")
    with pytest.raises(Exception, match=rf"nnapi\.execute_failed: ANeuralNetworks{function}"):
        add(x, out)
    monkeypatch.delenv("FAULT_FAIL")
    add(x, out)
    np.testing.assert_array_equal(out, np.ones(SHAPE))


@pytest.mark.parametrize("compute", ["auto", "burst", "sync", "async"])
@pytest.mark.parametrize("buffers", ["pointer", "memory"])
def test_a_support_library_driver_computes(make: Make, buffers: str, compute: str) -> None:
    driver = str(build_simulator("linux-x86_64"))
    expect_sums(make(Path("absent.so"), sl_driver=driver, buffers=buffers, compute=compute))


def test_the_driver_s_devices_are_told(make: Make) -> None:
    make(Path("absent.so"), sl_driver=str(build_simulator("linux-x86_64")))
    told = json.loads(tvm_ffi.get_global_func("nnfarm.nnapi.probe")())
    assert (told["available"], told["feature_level"]) == (True, 8)
    assert [device["name"] for device in told["devices"]] == ["nnapi-reference"]


def test_a_library_that_is_no_driver(make: Make, fault_library: Any) -> None:
    add = make(build_simulator("linux-x86_64"), sl_driver=str(fault_library()))
    x, out = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    with pytest.raises(Exception, match=r"nnapi\.missing: .*is no support-library driver"):
        add(x, out)


def test_unknown_buffers(make: Make) -> None:
    with pytest.raises(ValueError, match="buffers is one of memory pointer"):
        make(Path("absent.so"), buffers="somewhere")
