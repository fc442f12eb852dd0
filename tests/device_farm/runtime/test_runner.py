"""The runner on good packages: results, events, options, exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

SHAPE = (4, 8)
CONSTANTS = np.arange(32, dtype=np.float32).reshape(SHAPE) + np.float32(0.5)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "inputs.safetensors"
    samples = np.random.default_rng(7).normal(size=(3, *SHAPE)).astype(np.float32)
    save_file({"x": samples}, path)
    return path


def check_outputs(inputs: Path, outputs: Path) -> None:
    np.testing.assert_array_equal(load_file(outputs)["sum"], load_file(inputs)["x"] + CONSTANTS)


@pytest.mark.parametrize("mode", ["auto", "nnapi"])
@pytest.mark.parametrize("symbols", [1, 2, 3, 4, 5])
def test_every_sample_is_computed_by_nnapi_at_every_level(
    run: Any, package: Any, inputs: Path, tmp_path: Path, mode: str, symbols: int
) -> None:
    outputs = tmp_path / "out.safetensors"
    result = run(
        *("--package", package.folder, "--inputs", inputs, "--outputs", outputs),
        *("--mode", mode),
        symbols=symbols,
    )
    assert result.exit_code == 0, result.log
    assert result.one("end") == {"event": "end", "engine": "nnapi"}
    assert result.all("fallback") == []
    assert result.one("nnapi")["feature_level"] == symbols
    assert result.one("outputs") == {"event": "outputs", "samples": 3, "file": str(outputs)}
    check_outputs(inputs, outputs)


def test_events_tell_the_whole_run(run: Any, package: Any) -> None:
    result = run("--package", package.folder)
    names = [event["event"] for event in result.events]
    expected = "start nnapi loaded subgraph first_run latency memory end"
    assert names == expected.split()
    assert result.one("start")["target"] == "linux-x86_64"
    assert result.one("nnapi")["devices"] == [
        {"name": "fault-npu", "type": "accelerator", "version": "9.9", "feature_level": 4},
        {"name": "nnapi-reference", "type": "cpu", "version": "9.9", "feature_level": 5},
    ]
    assert result.one("loaded")["library"] == "model.so"
    subgraph = result.one("subgraph")
    assert subgraph["symbol"] == "nnfarm_nnapi_0"
    assert subgraph["operations"] == 2
    # The accelerator takes every operation, so the CPU reference is kept out.
    assert subgraph["devices"] == ["fault-npu"]
    assert subgraph["supported_operations"] == [2]
    assert subgraph["compile_us"] > 0
    assert len(result.one("latency")["samples_us"]) >= 5
    assert result.one("first_run")["us"] > 0
    assert 1 << 20 < result.one("memory")["peak_rss_bytes"] < 64 << 20


def test_the_twin_alone_touches_no_nnapi(
    run: Any, package: Any, inputs: Path, tmp_path: Path
) -> None:
    outputs = tmp_path / "out.safetensors"
    calls = tmp_path / "calls"
    result = run(
        *("--package", package.folder, "--inputs", inputs, "--outputs", outputs),
        *("--mode", "cpu"),
        FAULT_LOG=str(calls),
    )
    assert result.exit_code == 0, result.log
    assert result.one("end")["engine"] == "cpu"
    assert result.one("loaded")["library"] == "model_cpu.so"
    assert result.all("nnapi") == []
    assert not calls.exists()
    check_outputs(inputs, outputs)


def test_a_package_without_subgraphs_needs_no_nnapi(run: Any, package: Any) -> None:
    shutil.copyfile(package.folder / "model_cpu.so", package.folder / "model.so")
    size = (package.folder / "model.so").stat().st_size
    package.manifest.update(subgraph_count=0, offloaded_count=0)
    package.manifest["parts"][0]["size_bytes"] = size
    package.write_manifest()
    result = run("--package", package.folder, "--nnapi-library", "absent.so")
    assert result.exit_code == 0, result.log
    assert result.one("end")["engine"] == "cpu"
    assert result.all("fallback") == []


def test_partly_offloaded_is_mixed(run: Any, package: Any) -> None:
    package.manifest["operation_count"] = 3
    package.write_manifest()
    assert run("--package", package.folder).one("end")["engine"] == "mixed"


def calls_of(path: Path) -> dict[str, int]:
    names = path.read_text().split()
    return {name: names.count(name) for name in set(names)}


@pytest.mark.parametrize("symbols", [1, 3, 5])
def test_every_handle_is_freed(run: Any, package: Any, tmp_path: Path, symbols: int) -> None:
    log = tmp_path / "calls"
    run("--package", package.folder, "--no-trial", symbols=symbols, FAULT_LOG=str(log))
    calls = calls_of(log)
    mapped = "ANeuralNetworksMemory_createFromFd"
    assert calls.get(mapped) == calls.get("ANeuralNetworksMemory_free")
    assert (mapped in calls) == (symbols >= 3)
    for kind in ("Model", "Execution"):
        made = f"ANeuralNetworks{kind}_create"
        assert calls[made] == calls[f"ANeuralNetworks{kind}_free"] > 0
    assert calls["ANeuralNetworksCompilation_finish"] == calls["ANeuralNetworksCompilation_free"]
    waits = calls.get("ANeuralNetworksEvent_wait", 0)
    assert calls.get("ANeuralNetworksEvent_free", 0) == waits
    assert calls.get("ANeuralNetworksBurst_create") == calls.get("ANeuralNetworksBurst_free")


def test_level_5_reuses_one_execution_and_level_3_bursts(
    run: Any, package: Any, tmp_path: Path
) -> None:
    for symbols in (3, 5):
        run(
            *("--package", package.folder, "--no-trial"),
            symbols=symbols,
            FAULT_LOG=str(tmp_path / f"calls{symbols}"),
        )
    level3, level5 = calls_of(tmp_path / "calls3"), calls_of(tmp_path / "calls5")
    computed = level3["ANeuralNetworksExecution_burstCompute"]
    assert level3["ANeuralNetworksExecution_create"] == computed >= 7
    assert level5["ANeuralNetworksExecution_burstCompute"] >= 7
    # TVM's pooled memory may move once or twice before it settles.
    assert level5["ANeuralNetworksExecution_create"] <= 3


def test_a_device_can_be_chosen(run: Any, package: Any) -> None:
    chosen = run("--package", package.folder, "--device", "nnapi-reference")
    assert chosen.one("subgraph")["devices"] == ["nnapi-reference"]
    absent = run("--package", package.folder, "--device", "gpu0", "--mode", "nnapi")
    assert absent.exit_code == 6
    assert "no NNAPI device is gpu0" in absent.one("error")["detail"]


def test_probe(run: Any) -> None:
    result = run("--probe")
    assert [event["event"] for event in result.events] == ["start", "cpu", "nnapi"]
    assert result.one("nnapi")["available"] is True
    crashed = run("--probe", FAULT_CRASH="ANeuralNetworks_getDeviceCount")
    assert crashed.exit_code == 0
    assert crashed.one("nnapi")["available"] is False
    assert "SIGSEGV (11)" in crashed.one("nnapi")["detail"]
    missing = run("--probe", "--nnapi-library", "absent.so")
    assert missing.one("nnapi")["available"] is False
    assert missing.one("nnapi")["detail"].startswith("absent.so")


def test_threads_reach_tvm(run: Any, package: Any) -> None:
    assert run("--package", package.folder, "--mode", "cpu", "--threads", "1").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "--package"),
        (["--package"], "needs a value"),
        (["--package", "p", "--mode", "gpu"], "auto, nnapi or cpu"),
        (["--package", "p", "--iterations", "many"], "--iterations"),
        (["--package", "p", "--iterations", "-1"], "--iterations"),
        (["--package", "p", "--frobnicate"], "unknown option"),
    ],
)
def test_bad_usage_is_2(bundle: Path, arguments: list[str], word: str) -> None:
    from subprocess import run as run_program

    finished = run_program([bundle / "nnfarm_runner", *arguments], capture_output=True, check=False)
    assert finished.returncode == 2
    event = json.loads(finished.stdout.splitlines()[-1])
    assert event["code"] == "runner.usage"
    assert word in event["detail"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda p: (p.folder / "manifest.json").unlink(), "manifest.json"),
        (lambda p: (p.folder / "manifest.json").write_text("{"), "not JSON"),
        (lambda p: (p.folder / "manifest.json").write_text("[" * 100000), "nested too deep"),
        (lambda p: cut(p.folder / "weights.bin"), "weights.bin: 127 bytes, 128 expected"),
        (lambda p: cut(p.folder / "model.so"), "model.so"),
        (lambda p: (p.folder / "model_cpu.so").unlink(), "model_cpu.so"),
    ],
)
def test_damaged_package_is_3(
    run: Any, package: Any, damage: Callable[[Any], None], word: str
) -> None:
    damage(package)
    result = run("--package", package.folder)
    assert result.exit_code == 3
    assert result.one("error")["code"] == "runner.bad_package"
    assert word in result.one("error")["detail"]


def test_library_that_does_not_load_is_3(run: Any, package: Any) -> None:
    package.manifest["parts"][0]["size_bytes"] = 10
    (package.folder / "model.so").write_bytes(b"not an elf")
    package.write_manifest()
    result = run("--package", package.folder)
    assert result.exit_code == 3
    assert "model.so" in result.one("error")["detail"]


def test_weights_of_another_size_than_the_model_says_is_3(run: Any, package: Any) -> None:
    (package.folder / "weights.bin").write_bytes(bytes(64))
    package.manifest["parts"][2]["size_bytes"] = 64
    package.write_manifest()
    result = run("--package", package.folder)
    assert result.exit_code == 3
    assert result.one("error")["detail"] == "weights.bin: 64 bytes, 128 expected"


@pytest.mark.parametrize(
    ("tensors", "word"),
    [
        ({"y": np.zeros((1, *SHAPE), np.float32)}, "no tensor x"),
        ({"x": np.zeros((1, *SHAPE), np.float64)}, "F64, F32 expected"),
        ({"x": np.zeros(SHAPE, np.float32)}, "[samples, *input shape]"),
        ({"x": np.zeros((1, 4, 9), np.float32)}, "dimension 2 is 9, 8 expected"),
        ({"x": np.zeros((0, *SHAPE), np.float32)}, "no samples"),
    ],
)
def test_inputs_that_do_not_fit_are_4(
    run: Any, package: Any, tmp_path: Path, tensors: dict[str, Any], word: str
) -> None:
    save_file(tensors, tmp_path / "in.safetensors")
    result = run("--package", package.folder, "--inputs", tmp_path / "in.safetensors")
    assert result.exit_code == 4
    assert word in result.one("error")["detail"]


@pytest.mark.parametrize(
    "damage", [b"", b"\xff" * 8, b"\x02" + bytes(7) + b"{", b"\x02" + bytes(7)]
)
def test_damaged_inputs_are_4(run: Any, package: Any, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "in.safetensors").write_bytes(damage)
    result = run("--package", package.folder, "--inputs", tmp_path / "in.safetensors")
    assert result.exit_code == 4


def test_outputs_that_cannot_be_written_are_7(run: Any, package: Any, tmp_path: Path) -> None:
    full = run("--package", package.folder, "--outputs", tmp_path / "absent" / "out")
    assert full.exit_code == 7
    assert full.one("error")["code"] == "runner.storage_full"
    assert full.all("latency") == []
