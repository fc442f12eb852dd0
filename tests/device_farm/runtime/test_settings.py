"""NNAPI settings, from the command line and the manifest, as NNAPI hears of them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def heard(run: Any, tmp_path: Path) -> Callable[..., tuple[Any, list[str]]]:
    """Runs a package; gives the result and the words of the library's log."""

    def call(package: Any, *options: str | Path, **more: Any) -> tuple[Any, list[str]]:
        log = tmp_path / "calls"
        log.unlink(missing_ok=True)
        arguments = ("--package", package.folder, "--no-trial", "--mode", "nnapi", *options)
        result = run(*arguments, FAULT_LOG=str(log), **more)
        return result, log.read_text().split() if log.exists() else []

    return call


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("preference", "low-power", "preference=0"),
        ("preference", "sustained-speed", "preference=2"),
        ("priority", "low", "priority=90"),
        ("priority", "high", "priority=110"),
        ("compile-timeout-ms", "1500", "compile_timeout=1500000000"),
        ("execute-timeout-ms", "20", "execute_timeout=20000000"),
        ("relaxed", "true", "relaxed=1"),
    ],
)
def test_a_setting_reaches_nnapi(
    heard: Any, package: Any, option: str, value: str, word: str
) -> None:
    result, words = heard(package, f"--{option}", value)
    assert result.exit_code == 0, result.log
    assert word in words
    _, unset = heard(package)
    assert word not in unset

    package.manifest["nnapi_settings"] = {option: value}
    package.write_manifest()
    _, from_manifest = heard(package)
    assert word in from_manifest


def test_an_option_goes_before_the_manifest(heard: Any, package: Any) -> None:
    package.manifest["nnapi_settings"] = {"priority": "low"}
    package.write_manifest()
    _, words = heard(package, "--priority", "high")
    assert "priority=110" in words
    assert "priority=90" not in words


@pytest.mark.parametrize(
    ("compute", "symbols", "function"),
    [
        ("auto", 5, "ANeuralNetworksExecution_burstCompute"),
        ("burst", 3, "ANeuralNetworksExecution_burstCompute"),
        ("sync", 5, "ANeuralNetworksExecution_compute"),
        ("async", 5, "ANeuralNetworksExecution_startCompute"),
        ("async", 1, "ANeuralNetworksExecution_startCompute"),
    ],
)
def test_ways_to_compute(
    heard: Any, package: Any, compute: str, symbols: int, function: str
) -> None:
    result, words = heard(package, "--compute", compute, symbols=symbols)
    assert result.exit_code == 0, result.log
    ways = {word for word in words if word.endswith("ompute")}
    assert ways == {function}


def test_a_demanded_burst_is_no_single_computation(heard: Any, package: Any) -> None:
    burst = {"FAULT_FAIL": "ANeuralNetworksBurst_create=5"}
    result, _ = heard(package, "--compute", "burst", **burst)
    assert result.exit_code == 6
    assert result.one("error")["code"] == "nnapi.compile_failed"
    old, _ = heard(package, "--compute", "sync", symbols=1)
    assert old.one("error")["code"] == "nnapi.level_too_low"


@pytest.mark.parametrize(
    ("wanted", "devices"),
    [
        ("type:accelerator", ["fault-npu"]),
        ("type:cpu", ["nnapi-reference"]),
        ("not:nnapi-reference", ["fault-npu"]),
        ("not:fault-npu", ["nnapi-reference"]),
    ],
)
def test_devices_by_type_and_exclusion(
    heard: Any, package: Any, wanted: str, devices: list[str]
) -> None:
    result, _ = heard(package, "--device", wanted)
    assert result.one("subgraph")["devices"] == devices


def test_a_type_nobody_has(heard: Any, package: Any) -> None:
    result, _ = heard(package, "--device", "type:gpu")
    assert result.exit_code == 6
    assert result.one("error")["detail"].startswith(
        "no NNAPI device is type:gpu; there are: fault-npu (accelerator) nnapi-reference (cpu)"
    )


def test_the_cache_s_key_is_the_content(
    heard: Any, make_package: Any, encoded: Any, tmp_path: Path
) -> None:
    def key(*options: str) -> str:
        result, words = heard(package, "--cache-dir", tmp_path, *options)
        assert result.exit_code == 0, result.log
        assert f"cache={tmp_path}" in words
        (token,) = (word for word in words if word.startswith("token="))
        return str(token.removeprefix("token="))

    package = make_package(encoded)
    content = hashlib.sha256(json.dumps(encoded).encode()).digest()
    device = b"fault-npu\x009.9\x00"
    assert key() == hashlib.sha256(content + b"0" + device).hexdigest()
    assert key("--relaxed", "true") == hashlib.sha256(content + b"1" + device).hexdigest()
    assert key("--device", "nnapi-reference") not in (key(), key("--relaxed", "true"))


def test_a_cache_that_fails_costs_time_only(heard: Any, package: Any, tmp_path: Path) -> None:
    fault = {"FAULT_FAIL": "ANeuralNetworksCompilation_setCaching=6"}
    result, _ = heard(package, "--cache-dir", tmp_path, **fault)
    assert result.exit_code == 0
    assert "ANeuralNetworksCompilation_setCaching: BAD_STATE (6)" in result.log


def test_what_a_level_does_not_know_is_logged(heard: Any, package: Any, tmp_path: Path) -> None:
    options = ("--cache-dir", tmp_path, "--priority", "low", "--execute-timeout-ms", "5")
    result, _ = heard(package, *options, symbols=2)
    assert result.exit_code == 0
    assert "cache-dir is not known at feature level 2" in result.log
    assert "priority is not known at feature level 2" in result.log
    assert "NNAPI takes no time limits here" in result.log


@pytest.mark.parametrize(
    "function", ["Compilation_finish", "Execution_burstCompute", "Execution_setTimeout"]
)
def test_a_missed_deadline_is_a_timeout(run: Any, package: Any, function: str) -> None:
    result = run(
        *("--package", package.folder, "--execute-timeout-ms", "5"),
        FAULT_FAIL=f"ANeuralNetworks{function}=10",
    )
    assert result.exit_code == 0
    assert result.one("fallback")["code"] == "nnapi.timeout"
    assert result.one("end")["engine"] == "cpu"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("priority", "urgent", "priority is one of high low medium"),
        ("execute-timeout-ms", "-1", "execute-timeout-ms is a number"),
        ("compile-timeout-ms", "99999999999999999999", "compile-timeout-ms is a number"),
        ("compute", "", "compute is one of"),
    ],
)
def test_bad_settings(heard: Any, package: Any, option: str, value: str, message: str) -> None:
    result, _ = heard(package, f"--{option}", value)
    assert result.exit_code == 2
    assert message in result.one("error")["detail"]

    package.manifest["nnapi_settings"] = {option: value}
    package.write_manifest()
    packaged, _ = heard(package)
    assert packaged.exit_code == 3
    assert message in packaged.one("error")["detail"]


@pytest.mark.parametrize("name", ["color", "cache-dir"])
def test_settings_no_manifest_may_have(heard: Any, package: Any, name: str) -> None:
    package.manifest["nnapi_settings"] = {name: "x"}
    package.write_manifest()
    result, _ = heard(package)
    assert result.exit_code == 3
    assert name in result.one("error")["detail"]


def test_extension_data(heard: Any, make_package: Any, encoded: Any) -> None:
    data = base64.b64encode(b"six by").decode()
    operand = {"type": 0, "extension": "com.example.fault", "dims": [1], "omitted": True}
    encoded["operands"].append({**operand, "extension_data": data})
    result, words = heard(make_package(encoded))
    assert result.exit_code == 0, result.log
    assert "extension_data_of=6" in words
    assert "extension_data_size=6" in words
