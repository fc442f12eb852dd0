"""Whatever NNAPI does, the artifact runs: every fault moves the run to the twin, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

SHAPE = (4, 8)
CONSTANTS = np.arange(32, dtype=np.float32).reshape(SHAPE) + np.float32(0.5)

REFUSED, COMPILE, EXECUTE = (
    "nnapi.model_refused",
    "nnapi.compile_failed",
    "nnapi.execute_failed",
)

FAULTS_AT_LEVEL_5 = {
    "Model_create": REFUSED,
    "Model_addOperand": REFUSED,
    "Model_setOperandValue": REFUSED,
    "Model_setOperandValueFromMemory": REFUSED,
    "Model_addOperation": REFUSED,
    "Model_identifyInputsAndOutputs": REFUSED,
    "Model_finish": REFUSED,
    "Model_getSupportedOperationsForDevices": COMPILE,
    "Compilation_createForDevices": COMPILE,
    "Compilation_setPreference": COMPILE,
    "Compilation_finish": COMPILE,
    "Execution_create": EXECUTE,
    "Execution_setReusable": EXECUTE,
    "Execution_setInput": EXECUTE,
    "Execution_setOutput": EXECUTE,
    "Execution_burstCompute": EXECUTE,
    "_getDeviceCount": "nnapi.missing",
    "_getDevice": "nnapi.missing",
    "Device_getName": "nnapi.missing",
    "Device_getType": "nnapi.missing",
    "Device_getVersion": "nnapi.missing",
    "Device_getFeatureLevel": "nnapi.missing",
}
FAULTS_AT_LEVEL_1 = {
    "Compilation_create": COMPILE,
    "Execution_startCompute": EXECUTE,
    "Event_wait": EXECUTE,
}
CASES = [(name, code, 5) for name, code in FAULTS_AT_LEVEL_5.items()] + [
    (name, code, 1) for name, code in FAULTS_AT_LEVEL_1.items()
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    inputs = tmp_path / "inputs.safetensors"
    save_file({"x": np.ones((2, *SHAPE), np.float32)}, inputs)
    return inputs, tmp_path / "out.safetensors"


@pytest.fixture
def run_package(run: Any, package: Any, files: tuple[Path, Path]) -> Any:
    inputs, outputs = files
    arguments = ("--package", package.folder, "--inputs", inputs, "--outputs", outputs)
    return lambda *more, **faults: run(*arguments, *more, **faults)


def check_twin(result: Any, files: tuple[Path, Path], code: str) -> str:
    """The run ended on the twin because of `code`; returns the detail."""
    assert result.exit_code == 0, result.log
    fallback = result.one("fallback")
    assert fallback["code"] == code
    assert result.one("end")["engine"] == "cpu"
    assert result.all("loaded")[-1]["library"] == "model_cpu.so"
    assert len(result.all("latency")) == len(result.all("outputs")) == 1
    np.testing.assert_array_equal(load_file(files[1])["sum"], np.ones((2, *SHAPE)) + CONSTANTS)
    return str(fallback["detail"])


@pytest.mark.parametrize(("name", "code", "symbols"), CASES)
def test_a_failing_function_moves_to_the_twin(
    run_package: Any, files: tuple[Path, Path], name: str, code: str, symbols: int
) -> None:
    function = f"ANeuralNetworks{name}"
    # The trial is left out: it takes the same way, and a process more.
    result = run_package("--no-trial", symbols=symbols, FAULT_FAIL=f"{function}=5")
    detail = check_twin(result, files, code)
    assert detail.startswith(function)
    assert detail.endswith("OP_FAILED (5)")
    assert result.one("fallback")["subgraph"] == "nnfarm_nnapi_0"


def test_the_trial_tells_the_same(run_package: Any, files: tuple[Path, Path]) -> None:
    result = run_package(FAULT_FAIL="ANeuralNetworksCompilation_finish=4")
    detail = check_twin(result, files, COMPILE)
    assert detail == "ANeuralNetworksCompilation_finish: BAD_DATA (4)"
    assert result.one("fallback")["subgraph"] == "nnfarm_nnapi_0"
    # The process itself never loaded the library NNAPI failed on.
    assert [event["library"] for event in result.all("loaded")] == ["model_cpu.so"]


@pytest.mark.parametrize("function", ["Memory_createFromFd", "Burst_create"])
def test_what_only_saves_time_may_fail(run_package: Any, function: str) -> None:
    result = run_package(FAULT_FAIL=f"ANeuralNetworks{function}=7")
    assert result.exit_code == 0
    assert result.one("end")["engine"] == "nnapi"
    assert f"ANeuralNetworks{function}: UNMAPPABLE (7)" in result.log


def test_a_driver_that_may_not_read_the_weights_file_gets_copies(
    run_package: Any, files: tuple[Path, Path]
) -> None:
    result = run_package("--mode", "nnapi", FAULT_FILE_MEMORY="1")
    assert result.exit_code == 0, result.log
    assert "trying again without weights.bin as shared memory" in result.log
    np.testing.assert_array_equal(load_file(files[1])["sum"], np.ones((2, *SHAPE)) + CONSTANTS)


@pytest.mark.parametrize("symbols", [1, 2])
def test_where_nnapi_would_hide_it_the_file_is_not_given(
    run_package: Any, tmp_path: Path, symbols: int
) -> None:
    """Below level 3 a driver that may not read it is passed over without a word."""
    log = tmp_path / "calls"
    result = run_package("--mode", "nnapi", symbols=symbols, FAULT_LOG=str(log))
    assert result.exit_code == 0, result.log
    calls = set(log.read_text().split())
    assert "ANeuralNetworksModel_setOperandValue" in calls
    assert "ANeuralNetworksModel_setOperandValueFromMemory" not in calls


@pytest.mark.parametrize(
    "function", ["_getDeviceCount", "Compilation_finish", "Execution_burstCompute"]
)
def test_a_crash_moves_to_the_twin(
    run_package: Any, files: tuple[Path, Path], function: str
) -> None:
    result = run_package(FAULT_CRASH=f"ANeuralNetworks{function}")
    assert check_twin(result, files, "nnapi.driver_crashed") == "SIGSEGV (11)"
    assert len(result.all("nnapi")) == 1


def test_a_driver_that_ends_the_process_is_a_crash(
    run_package: Any, files: tuple[Path, Path]
) -> None:
    result = run_package(FAULT_EXIT="ANeuralNetworksCompilation_finish")
    assert "status 1" in check_twin(result, files, "nnapi.driver_crashed")


def test_a_hang_moves_to_the_twin(run_package: Any, files: tuple[Path, Path]) -> None:
    result = run_package(
        "--trial-timeout-ms", "300", FAULT_HANG="ANeuralNetworksExecution_burstCompute"
    )
    assert check_twin(result, files, "nnapi.timeout") == "no answer within 300 ms"


def test_a_missing_library_moves_to_the_twin(run_package: Any, files: tuple[Path, Path]) -> None:
    result = run_package("--nnapi-library", "absent.so")
    check_twin(result, files, "nnapi.missing")
    assert result.one("nnapi")["available"] is False


def test_a_failure_after_good_runs_moves_to_the_twin(
    run_package: Any, files: tuple[Path, Path]
) -> None:
    result = run_package(FAULT_FAIL="ANeuralNetworksExecution_burstCompute=14", FAULT_AFTER="4")
    assert check_twin(result, files, EXECUTE).endswith("DEAD_OBJECT (14)")
    # Numbers of the library that failed half-way are not published.
    assert [event["library"] for event in result.all("loaded")] == ["model.so", "model_cpu.so"]


def test_a_level_too_low_moves_to_the_twin(
    run: Any, make_package: Any, encoded: Any, files: tuple[Path, Path]
) -> None:
    encoded["level"] = 4
    package = make_package(encoded)
    inputs, outputs = files
    result = run(
        *("--package", package.folder, "--inputs", inputs, "--outputs", outputs),
        FAULT_LEVEL="29",
    )
    detail = check_twin(result, files, "nnapi.level_too_low")
    assert detail == "the model needs feature level 4; this device has 3"


def test_an_operation_no_device_takes(run: Any, make_package: Any, encoded: Any) -> None:
    encoded["operations"][1]["code"] = 18
    encoded["operations"][1]["name"] = "MUL"
    package = make_package(encoded)
    result = run("--package", package.folder)
    assert result.one("fallback")["code"] == COMPILE
    assert result.one("fallback")["detail"] == "no device takes operation 1 MUL"


@pytest.mark.parametrize(
    ("extension", "symbols", "engine"),
    [
        ("com.example.fault", 5, "nnapi"),
        ("com.example.absent", 5, "cpu"),
        ("com.example.fault", 2, "cpu"),
    ],
)
def test_extensions(
    run: Any, make_package: Any, encoded: Any, extension: str, symbols: int, engine: str
) -> None:
    encoded["operations"][0]["extension"] = extension
    result = run("--package", make_package(encoded).folder, symbols=symbols)
    assert result.one("end")["engine"] == engine
    codes = [event["code"] for event in result.all("fallback")]
    assert codes == ([] if engine == "nnapi" else ["nnapi.extension_unsupported"])


def test_mode_nnapi_has_no_twin(run_package: Any) -> None:
    result = run_package("--mode", "nnapi", FAULT_FAIL="ANeuralNetworksModel_finish=4")
    assert result.exit_code == 6
    assert result.one("error")["code"] == REFUSED
    assert result.all("fallback") == []
    crashed = run_package("--mode", "nnapi", FAULT_CRASH="ANeuralNetworksModel_finish")
    assert crashed.exit_code == -11


def test_a_twin_that_fails_too_is_5(run_package: Any, package: Any) -> None:
    package.manifest["signature"]["outputs"].append(
        {"name": "absent", "dtype": "float32", "shape": [1]}
    )
    package.write_manifest()
    result = run_package(FAULT_FAIL="ANeuralNetworksModel_finish=4")
    assert result.exit_code == 5
    assert result.one("error")["code"] == "runner.failed"
