"""CMake and Ninja: one call builds one source folder by one preset of its ``CMakePresets.json``.

Compilers and flags are in ``presets.json`` beside this file. Everything comes from PyPI (`cmake`,
`ninja`, `ziglang`); only the Android presets need an NDK, found through ``ANDROID_NDK_HOME``. Ninja
decides what is out of date, so a repeated call is cheap.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

BUILD_JOBS = 2


class ToolchainError(RuntimeError):
    """A tool is missing or the native build failed; the message says which and why."""


def presets(source_dir: Path) -> tuple[str, ...]:
    """Returns the names that `build` takes for a folder: the presets that are not hidden."""
    document = json.loads((source_dir / "CMakePresets.json").read_text())
    return tuple(
        preset["name"] for preset in document["configurePresets"] if not preset.get("hidden")
    )


def build(source_dir: Path, build_dir: Path, preset: str, cmake_args: Sequence[str] = ()) -> Path:
    """Configures and builds `source_dir` by `preset`.

    Args:
        source_dir: folder with the CMakeLists.txt and the CMakePresets.json.
        build_dir: created when missing; results are there.
        preset: one of `presets`.
        cmake_args: more arguments for the configure step, such as ``-DNAME=value``.

    Returns:
        `build_dir`.

    Raises:
        ToolchainError: unknown preset, a tool is missing, or CMake or the compiler failed.
    """
    known = presets(source_dir)
    if preset not in known:
        raise ToolchainError(f"unknown target {preset!r}; known: {', '.join(known)}")
    build_dir.mkdir(parents=True, exist_ok=True)
    cmake = find_tool("cmake")
    configure = [
        *(cmake, "--preset", preset, "-S", str(source_dir), "-B", str(build_dir)),
        f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}",
        *_compiler_args(preset),
        *cmake_args,
    ]
    with _locked(build_dir):
        _run(configure, f"configuring {source_dir.name} for {preset}")
        _run(
            [cmake, "--build", str(build_dir), "--parallel", str(BUILD_JOBS)],
            f"building {source_dir.name} for {preset}",
        )
    return build_dir


def find_tool(name: str) -> str:
    """Returns the path of a build tool: the one beside this Python first, then PATH.

    Raises:
        ToolchainError: it is in neither place.
    """
    beside_python = Path(sys.executable).parent / name
    if beside_python.exists():
        return str(beside_python)
    found = shutil.which(name)
    if found is None:
        raise ToolchainError(f"{name} is missing: install it with `pip install {name}`")
    return found


def zig_path() -> str:
    """Returns the Zig executable of the `ziglang` package.

    Raises:
        ToolchainError: the package is not installed.
    """
    try:
        import ziglang  # here: only the Linux targets need the package
    except ImportError as error:
        raise ToolchainError("ziglang is missing: install it with `pip install ziglang`") from error
    return str(Path(ziglang.__file__).parent / "zig")


@contextmanager
def _locked(build_dir: Path) -> Iterator[None]:
    # Ninja does not guard a folder against a second Ninja; two test runs at once are common.
    with (build_dir / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _compiler_args(preset: str) -> list[str]:
    if preset.startswith("android-"):
        home = os.environ.get("ANDROID_NDK_HOME", "")
        if not home or not (Path(home) / "build/cmake/android.toolchain.cmake").exists():
            raise ToolchainError(f"{preset} needs an Android NDK: set ANDROID_NDK_HOME")
        return []
    return [f"-DNNFARM_ZIG={zig_path()}"] if preset.startswith("linux-") else []


def _run(command: Sequence[str], what: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        output = (result.stdout + result.stderr)[-8000:]
        raise ToolchainError(f"{what} failed (exit {result.returncode}):\n{output}")
