"""A hostile NNAPI: each function in turn is missing, lies, or answers what no NNAPI knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

SHAPE = (4, 8)
EXPECTED = np.ones((1, *SHAPE)) + np.arange(32, dtype=np.float32).reshape(SHAPE) + np.float32(0.5)
SOURCE = Path(__file__).with_name("fault_nnapi.c").read_text()
FUNCTIONS = re.findall(r"^(?:int|void|int64_t) (ANeuralNetworks\w+)\(", SOURCE, re.MULTILINE)
FAILING = re.findall(r"^int (ANeuralNetworks\w+)\(", SOURCE, re.MULTILINE)
# Whoever says it computed, and did not, leaves the memory of results as it was: no player can tell.
UNDETECTABLE = {
    "ANeuralNetworksModel_setOperandValue",
    "ANeuralNetworksModel_setOperandValueFromMemory",
    "ANeuralNetworksModel_addOperation",
    "ANeuralNetworksModel_identifyInputsAndOutputs",
    "ANeuralNetworksExecution_setInput",
    "ANeuralNetworksExecution_setOutput",
    "ANeuralNetworksExecution_burstCompute",
}
ENGINES = {"nnapi", "cpu"}

RunSum = Callable[..., Any]


@pytest.fixture
def run_sum(run: Any, package: Any, tmp_path: Path) -> RunSum:
    """Runs the package in mode auto, and brings its result along."""
    inputs, outputs = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file({"x": np.ones((1, *SHAPE), np.float32)}, inputs)

    def run_it(*arguments: str | Path, **faults: Any) -> Any:
        words = ("--package", package.folder, "--inputs", inputs, "--outputs", outputs)
        result = run(*words, *arguments, **faults)
        assert result.exit_code == 0, result.log
        assert result.one("end")["engine"] in ENGINES
        return result, load_file(outputs)["sum"]

    return run_it


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_one_of_its_functions(
    run_sum: RunSum, fault_library: Callable[..., Path], tmp_path: Path, function: str
) -> None:
    """Level 5 otherwise; what is needed leads to the twin, what only saves time does not."""
    name = f"{function}\0".encode()
    whole = fault_library(5).read_bytes()
    # Under another name in the table of symbols, dlsym does not find it.
    hidden = whole.replace(b"\0" + name, b"\0X" + name[1:])
    assert hidden != whole
    library = tmp_path / "without.so"
    library.write_bytes(hidden)
    result, total = run_sum("--nnapi-library", library)
    np.testing.assert_array_equal(total, EXPECTED)
    fallbacks = [event["code"] for event in result.all("fallback")]
    assert fallbacks in ([], ["nnapi.missing"])
    if function.endswith(("Model_create", "Compilation_finish", "Execution_create")):
        assert fallbacks == ["nnapi.missing"]


@pytest.mark.parametrize("function", FAILING)
def test_a_function_that_says_it_did_and_did_not(run_sum: RunSum, function: str) -> None:
    _, total = run_sum(FAULT_SKIP=function)
    if function not in UNDETECTABLE:
        np.testing.assert_array_equal(total, EXPECTED)


@pytest.mark.parametrize(
    ("function", "symbols"),
    [
        *((name, 5) for name in FAILING if name.endswith("_create")),
        *((f"ANeuralNetworks_get{what}", 5) for what in ("Device", "DeviceCount")),
        *((f"ANeuralNetworksDevice_get{what}", 5) for what in ("Name", "Version", "Type")),
        ("ANeuralNetworksMemory_createFromFd", 5),
        ("ANeuralNetworksCompilation_createForDevices", 5),
        ("ANeuralNetworksExecution_startCompute", 1),
    ],
)
def test_success_without_a_result_is_met_without_a_trial(
    run_sum: RunSum, function: str, symbols: int
) -> None:
    """As in an application, where a crash would be the application's."""
    _, total = run_sum("--no-trial", symbols=symbols, FAULT_SKIP=function)
    np.testing.assert_array_equal(total, EXPECTED)


def test_a_count_of_devices_that_is_none(run_sum: RunSum) -> None:
    told, total = run_sum("--no-trial", FAULT_DEVICES="4000000000")
    np.testing.assert_array_equal(total, EXPECTED)
    assert told.one("fallback")["code"] == "nnapi.missing"
    assert "4000000000 devices" in told.one("fallback")["detail"]


@pytest.mark.parametrize("result", ["-1", "13", "2147483647"])
@pytest.mark.parametrize(
    "function", ["Model_finish", "Compilation_finish", "Execution_burstCompute", "_getDeviceCount"]
)
def test_results_that_nnapi_does_not_have(run_sum: RunSum, function: str, result: str) -> None:
    told, total = run_sum("--no-trial", FAULT_FAIL=f"ANeuralNetworks{function}={result}")
    np.testing.assert_array_equal(total, EXPECTED)
    assert f"({result})" in told.one("fallback")["detail"]


@pytest.mark.parametrize("level", ["-1", "0", "26", "32", "1000008", "9223372036854775807"])
def test_levels_that_nnapi_does_not_have(run_sum: RunSum, level: str) -> None:
    _, total = run_sum(FAULT_LEVEL=level)
    np.testing.assert_array_equal(total, EXPECTED)
