"""What the runner measures when asked: compilations, operations, CPUs, crashes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from device_farm.simulator import build as simulator

OPERATIONS = 2
COMPILE_US = 60_000.0
PHONE = "feature_level {level}\ndevice sim-npu accelerator 1.0 {level}\n"
SLOW = "latency compile_per_operation_us 30000\n"


@pytest.fixture(scope="module")
def simulated() -> Path:
    return simulator.build_simulator("linux-x86_64")


@pytest.fixture
def phone(run: Any, simulated: Path, package: Any, tmp_path: Path) -> Callable[..., Any]:
    def run_on(*arguments: str | Path, level: int = 5, quirks: str = "") -> Any:
        profile = tmp_path / "profile"
        profile.write_text(PHONE.format(level=level) + SLOW + quirks)
        words = ("--package", package.folder, "--nnapi-library", simulated, *arguments)
        return run(*words, NNFARM_SIM_PROFILE=str(profile))

    return run_on


@pytest.mark.parametrize("mode", [("--mode", "auto"), ("--mode", "nnapi"), ("--no-trial",)])
def test_cold_and_cached_compilations(
    phone: Callable[..., Any], tmp_path: Path, mode: tuple[str, ...]
) -> None:
    cache = tmp_path / "cache"
    result = phone("--compile-times", "--cache-dir", cache, *mode)
    assert result.exit_code == 0, result.log
    times = result.one("compile_times")
    assert times["cold_us"] >= COMPILE_US
    assert times["cached_us"] < COMPILE_US
    assert result.one("end")["engine"] == "nnapi"
    assert len(list(cache.iterdir())) == 1


def test_each_compilation_is_in_a_process_of_its_own(
    run: Any, package: Any, tmp_path: Path
) -> None:
    """The library's second compilation in a process would fail."""
    arguments = ("--compile-times", "--cache-dir", tmp_path / "cache", "--no-trial")
    second = {"FAULT_FAIL": "ANeuralNetworksCompilation_finish=4", "FAULT_AFTER": "1"}
    result = run("--package", package.folder, *arguments, **second)
    assert result.exit_code == 0, result.log
    assert result.one("end")["engine"] == "nnapi"
    assert result.one("compile_times")["cached_us"] > 0


def test_a_driver_that_ignores_its_cache_shows(phone: Callable[..., Any], tmp_path: Path) -> None:
    quirk = "quirk sim-npu ignore_cache 1\n"
    result = phone("--compile-times", "--cache-dir", tmp_path / "cache", quirks=quirk)
    assert result.one("compile_times")["cached_us"] >= COMPILE_US


def test_below_level_3_there_is_no_cache(phone: Callable[..., Any], tmp_path: Path) -> None:
    result = phone("--compile-times", "--cache-dir", tmp_path / "cache", level=2)
    assert result.exit_code == 0, result.log
    assert set(result.one("compile_times")) == {"event", "cold_us"}


def test_a_cache_that_is_there_already_is_refused(
    phone: Callable[..., Any], tmp_path: Path
) -> None:
    result = phone("--compile-times", "--cache-dir", tmp_path)
    assert result.exit_code == 2
    assert "makes the folder of --cache-dir" in result.one("error")["detail"]
    assert phone("--compile-times").exit_code == 2


def test_a_crash_while_compile_times_are_taken_moves_to_the_twin(
    run: Any, package: Any, tmp_path: Path
) -> None:
    arguments = ("--compile-times", "--cache-dir", tmp_path / "cache", "--no-trial")
    crash = {"FAULT_CRASH": "ANeuralNetworksCompilation_finish"}
    result = run("--package", package.folder, *arguments, **crash)
    assert result.exit_code == 0, result.log
    assert result.one("fallback")["code"] == "nnapi.driver_crashed"
    assert "--compile-times" in result.one("fallback")["detail"]
    assert result.all("compile_times") == []


def test_an_error_while_compile_times_are_taken_is_told_once(
    run: Any, package: Any, tmp_path: Path
) -> None:
    arguments = ("--compile-times", "--cache-dir", tmp_path / "cache", "--mode", "nnapi")
    fault = {"FAULT_FAIL": "ANeuralNetworksModel_finish=4"}
    result = run("--package", package.folder, *arguments, **fault)
    assert result.exit_code == 6
    assert result.one("error")["code"] == "nnapi.model_refused"


def test_the_time_of_each_call(run: Any, package: Any) -> None:
    result = run("--package", package.folder, "--per-op")
    event = result.one("operations")
    assert event["inferences"] == 5
    calls = {operation["name"]: operation for operation in event["operations"]}
    assert calls["nnfarm_nnapi_0"]["kind"] == "nnapi"
    assert all(operation["us"] >= 0 for operation in calls.values())


def subgraph_of(result: Any) -> dict[str, Any]:
    (found,) = [
        operation
        for operation in result.one("operations")["operations"]
        if operation["kind"] == "nnapi"
    ]
    return dict(found)


@pytest.mark.parametrize("level", [3, 5])
@pytest.mark.parametrize("compute", ["burst", "sync", "async"])
def test_nnapi_s_own_times_are_beside_the_wall_time(
    phone: Callable[..., Any], level: int, compute: str
) -> None:
    slow = "latency per_execution_us 2000\n"
    result = phone("--per-op", "--compute", compute, level=level, quirks=slow)
    subgraph = subgraph_of(result)
    assert 2000 <= subgraph["hardware_us"] <= subgraph["driver_us"] <= subgraph["us"]


def test_nnapi_tells_no_times_below_level_3(phone: Callable[..., Any]) -> None:
    assert set(subgraph_of(phone("--per-op", level=2))) == {"name", "kind", "us"}


def test_nnapi_tells_no_times_of_two_devices(phone: Callable[..., Any]) -> None:
    other = "device sim-gpu gpu 1.0 5\n"
    result = phone("--per-op", quirks=other)
    assert len(result.one("subgraph")["devices"]) == 2
    assert set(subgraph_of(result)) == {"name", "kind", "us"}


def test_a_driver_that_has_no_clock(run: Any, package: Any) -> None:
    result = run("--package", package.folder, "--per-op")
    assert set(subgraph_of(result)) == {"name", "kind", "us"}


def test_the_twin_s_calls_are_the_cpu_s(run: Any, package: Any) -> None:
    result = run("--package", package.folder, "--per-op", "--mode", "cpu")
    kinds = {operation["kind"] for operation in result.one("operations")["operations"]}
    assert "cpu" in kinds
    assert "nnapi" not in kinds


def test_cpus_by_mask(run: Any, package: Any) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    result = run("--package", package.folder, "--affinity", f"{1 << allowed[-1]:x}")
    assert result.one("cpus") == {"event": "cpus", "cpus": [allowed[-1]], "threads": 1}


@pytest.mark.parametrize("choice", ["all", "big"])
def test_cpus_by_kind(run: Any, package: Any, choice: str) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    cpus = run("--package", package.folder, "--affinity", choice).one("cpus")
    assert set(cpus["cpus"]) <= set(allowed)
    assert cpus["threads"] == len(cpus["cpus"]) > 0
    if choice == "all":
        assert cpus["cpus"] == allowed


def test_threads_bound_are_those_asked_for(run: Any, package: Any) -> None:
    cpus = run("--package", package.folder, "--affinity", "all", "--threads", "1").one("cpus")
    assert cpus["threads"] == 1


@pytest.mark.parametrize("mask", ["0", "", "xyz", "-1", "f" * 300])
def test_a_mask_that_is_none(run: Any, package: Any, mask: str) -> None:
    result = run("--package", package.folder, "--affinity", mask)
    assert result.exit_code == 2
    assert result.one("error")["code"] == "runner.usage"
