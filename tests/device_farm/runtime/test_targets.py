"""The other builds: arm64 under QEMU, sanitizers, TVM from the wheels' sources, bundles."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from device_farm.native import toolchain
from device_farm.native.toolchain import ToolchainError
from device_farm.runtime import build

SHAPE = (4, 8)
CONSTANTS = np.arange(32, dtype=np.float32).reshape(SHAPE) + np.float32(0.5)
FAULTS: list[dict[str, str]] = [
    {},
    {"FAULT_FAIL": "ANeuralNetworksModel_addOperation=4"},
    {"FAULT_FAIL": "ANeuralNetworksExecution_burstCompute=5"},
    {"FAULT_FAIL": "ANeuralNetworksMemory_createFromFd=7"},
    {"FAULT_CRASH": "ANeuralNetworksCompilation_finish"},
]


def check(run: Any, package: Any, tmp_path: Path, faults: dict[str, str]) -> Any:
    inputs, outputs = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    save_file({"x": np.full((2, *SHAPE), 0.25, np.float32)}, inputs)
    result = run("--package", package.folder, "--inputs", inputs, "--outputs", outputs, **faults)
    assert result.exit_code == 0, result.log
    np.testing.assert_array_equal(load_file(outputs)["sum"], np.full((2, *SHAPE), 0.25) + CONSTANTS)
    falls_back = bool(faults) and "Memory" not in next(iter(faults.values()))
    assert len(result.all("fallback")) == falls_back
    assert result.one("end")["engine"] == ("cpu" if falls_back else "nnapi")
    return result


@pytest.mark.arm64
@pytest.mark.parametrize("faults", FAULTS)
def test_arm64(
    run_arm64: Any, make_package: Any, arm64: Any, tmp_path: Path, faults: dict[str, str]
) -> None:
    result = check(run_arm64, make_package(platform=arm64), tmp_path, faults)
    assert result.one("start")["target"] == "linux-aarch64"


@pytest.mark.gcc
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("symbols", [1, 5])
def test_sanitizers_find_nothing(
    run_sanitized: Any, package: Any, tmp_path: Path, faults: dict[str, str], symbols: int
) -> None:
    if symbols == 1 and "burst" in str(faults):
        faults = {"FAULT_FAIL": "ANeuralNetworksEvent_wait=5"}

    def run(*arguments: Any, **environment: str) -> Any:
        return run_sanitized(*arguments, symbols=symbols, **environment)

    result = check(run, package, tmp_path, faults)
    assert "Sanitizer" not in result.log
    assert "runtime error" not in result.log


@pytest.mark.parametrize("faults", FAULTS)
def test_tvm_from_source(
    run_from_source: Any, package: Any, tmp_path: Path, faults: dict[str, str]
) -> None:
    """What Android needs: a library of the wheel's compiler runs in a runtime built here."""
    check(run_from_source, package, tmp_path, faults)


def test_an_error_inside_tvm_crosses_the_libraries(run_from_source: Any, package: Any) -> None:
    """libtvm_runtime throws into libtvm_ffi: both carry their own C++ library."""
    (package.folder / "model.so").write_bytes(b"not an elf")
    package.manifest["parts"][0]["size_bytes"] = 10
    package.write_manifest()
    result = run_from_source("--package", package.folder)
    assert result.exit_code == 3
    assert "model.so" in result.one("error")["detail"]


def test_the_bundle_is_complete_and_described(bundle: Path) -> None:
    description = json.loads((bundle / "bundle.json").read_text())
    assert description["target"] == "linux-x86_64"
    assert description["versions"]["apache-tvm"] == "0.27.0.post1"
    digests = description["sha256"]
    assert set(digests) == {
        *("nnfarm_runner", "libnnfarm_runtime.so", "nnfarm_runtime.h"),
        *("libnnfarm_nnapi.so", "libtvm_runtime.so", "libtvm_ffi.so"),
    }
    for name, digest in digests.items():
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == digest


def test_nothing_but_c_is_exported(bundle: Path) -> None:
    """Exported type information would be merged with TVM's own and crash its exceptions."""
    for name in ("nnfarm_runner", "libnnfarm_nnapi.so"):
        listing = subprocess.run(
            ["nm", "-D", "--defined-only", bundle / name],
            capture_output=True,
            text=True,
            check=True,
        )
        assert listing.stdout == ""
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", bundle / "libnnfarm_runtime.so"],
        capture_output=True,
        text=True,
        check=True,
    )
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    declared = re.findall(r"\b(nnfarm_\w+)\(", (bundle / "nnfarm_runtime.h").read_text())
    assert exported == {*declared, "nnfarm_runner_main"}


def test_a_bundle_with_tvm_in_it_is_small(bundle_from_source: Path) -> None:
    """What Android gets, C API and TVM's libraries among it."""
    sizes = {path.name: path.stat().st_size for path in bundle_from_source.iterdir()}
    assert sum(sizes.values()) < 3_500_000, sizes


def test_android_without_an_ndk_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANDROID_NDK_HOME", raising=False)
    with pytest.raises(ToolchainError, match="android-arm64-v8a needs an Android NDK"):
        build.build("android-arm64-v8a")


def test_android_is_built_with_the_ndk_s_own_toolchain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "ndk" / "build" / "cmake" / "android.toolchain.cmake"
    file.parent.mkdir(parents=True)
    settings = "${ANDROID_ABI} ${ANDROID_PLATFORM} ${ANDROID_STL}"
    file.write_text(f'message(FATAL_ERROR "got {settings}")')
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path / "ndk"))
    with pytest.raises(ToolchainError, match=r"got armeabi-v7a android-27 c\+\+_static"):
        build.build("android-armeabi-v7a", tmp_path / "build")


@pytest.mark.parametrize("name", ["nnfarm_runner", "libnnfarm_nnapi.so"])
def test_libraries_are_found_beside_the_runner(bundle: Path, name: str) -> None:
    """By DT_RUNPATH: Android's linker reads no DT_RPATH."""
    listing = subprocess.run(
        ["readelf", "-d", bundle / name], capture_output=True, text=True, check=True
    )
    assert "(RUNPATH)            Library runpath: [$ORIGIN]" in listing.stdout


@pytest.mark.parametrize("part", ["runtime", "simulator"])
def test_cmake_knows_every_target(part: str) -> None:
    """What build.py takes is what `cmake --preset` takes."""
    source = Path(build.__file__).parents[1] / part
    command = [toolchain.find_tool("cmake"), "--list-presets", "-S", str(source)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True, cwd=source)
    listed = re.findall(r'^  "([^"]+)"', listing.stdout, re.MULTILINE)
    # CMake leaves Android's out where the environment does not name an NDK.
    expected = [name for name in toolchain.presets(source) if not name.startswith("android-")]
    assert [name for name in listed if not name.startswith("android-")] == expected
    assert "linux-aarch64" in expected


def test_unknown_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["commodore-64"]) == 1
    assert "unknown target" in capsys.readouterr().err
