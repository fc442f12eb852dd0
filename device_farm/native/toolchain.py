"""CMake and Ninja over the Zig toolchain: one call builds one source folder for one target.

Everything comes from PyPI (`cmake`, `ninja`, `ziglang`); only the Android targets need an NDK,
found through ``ANDROID_NDK_HOME``. Ninja decides what is out of date, so a repeated call is cheap.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUILD_JOBS = 2


class ToolchainError(RuntimeError):
    """A tool is missing or the native build failed; the message says which and why."""


@dataclass(frozen=True)
class Target:
    """Where native code runs.

    Attributes:
        name: folder name below ``build/<part>/``.
        zig_triple: target of ``zig c++``; empty for targets of another compiler.
        processor: ``CMAKE_SYSTEM_PROCESSOR``.
        android_abi: ABI of the NDK's own CMake toolchain; empty outside Android.
        gcc_flags: for this host, by its GCC; empty elsewhere.
    """

    name: str
    processor: str
    zig_triple: str = ""
    android_abi: str = ""
    gcc_flags: str = ""


# Zig ships neither sanitizer runtimes for C++ nor a profile runtime.
_SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1"
_COVERAGE = "--coverage -fprofile-update=atomic"

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        # glibc 2.28 is the oldest one that is still in a supported distribution.
        Target("linux-x86_64", "x86_64", zig_triple="x86_64-linux-gnu.2.28"),
        Target("linux-aarch64", "aarch64", zig_triple="aarch64-linux-gnu.2.28"),
        Target("android-arm64-v8a", "aarch64", android_abi="arm64-v8a"),
        Target("android-armeabi-v7a", "armv7-a", android_abi="armeabi-v7a"),
        Target("android-x86_64", "x86_64", android_abi="x86_64"),
        Target("sanitize", "host", gcc_flags=_SANITIZE),
        Target("coverage", "host", gcc_flags=_COVERAGE),
    )
}


def build(source_dir: Path, build_dir: Path, target: str, cmake_args: Sequence[str] = ()) -> Path:
    """Configures and builds `source_dir` for `target`.

    Args:
        source_dir: folder with the CMakeLists.txt.
        build_dir: created when missing; results are there.
        target: a key of `TARGETS`.
        cmake_args: more arguments for the configure step, such as ``-DNAME=value``.

    Returns:
        `build_dir`.

    Raises:
        ToolchainError: unknown target, a tool is missing, or CMake or the compiler failed.
    """
    if target not in TARGETS:
        raise ToolchainError(f"unknown target {target!r}; known: {', '.join(TARGETS)}")
    build_dir.mkdir(parents=True, exist_ok=True)
    configure = [
        find_tool("cmake"),
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}",
        "-DCMAKE_BUILD_TYPE=Release",
        "-S",
        str(source_dir),
        "-B",
        str(build_dir),
        *_target_args(TARGETS[target], build_dir),
        *cmake_args,
    ]
    compile_ = [find_tool("cmake"), "--build", str(build_dir), "--parallel", str(BUILD_JOBS)]
    with _locked(build_dir):
        _run(configure, f"configuring {source_dir.name} for {target}")
        _run(compile_, f"building {source_dir.name} for {target}")
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


def _target_args(target: Target, build_dir: Path) -> list[str]:
    if target.gcc_flags:
        return [f"-DCMAKE_CXX_FLAGS={target.gcc_flags}", "-DCMAKE_CXX_COMPILER=g++"]
    if target.android_abi:
        return _android_args(target)
    toolchain_file = build_dir / "toolchain.cmake"
    text = _zig_toolchain_text(target)
    # An unchanged file keeps its time stamp, or CMake would configure from scratch each time.
    if not toolchain_file.exists() or toolchain_file.read_text() != text:
        toolchain_file.write_text(text)
    return [f"-DCMAKE_TOOLCHAIN_FILE={toolchain_file}"]


def _android_args(target: Target) -> list[str]:
    home = os.environ.get("ANDROID_NDK_HOME", "")
    toolchain_file = Path(home) / "build" / "cmake" / "android.toolchain.cmake"
    if not home or not toolchain_file.exists():
        raise ToolchainError(f"{target.name} needs an Android NDK: set ANDROID_NDK_HOME")
    return [
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain_file}",
        f"-DANDROID_ABI={target.android_abi}",
        "-DANDROID_PLATFORM=android-27",
        "-DANDROID_STL=c++_static",
    ]


def _zig_toolchain_text(target: Target) -> str:
    zig = zig_path()
    return f"""# Written by device_farm/native/toolchain.py.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR {target.processor})
set(CMAKE_C_COMPILER {zig} cc)
set(CMAKE_CXX_COMPILER {zig} c++)
set(CMAKE_C_COMPILER_TARGET {target.zig_triple})
set(CMAKE_CXX_COMPILER_TARGET {target.zig_triple})
# Zig's ar is a subcommand, which CMAKE_AR cannot hold.
foreach(language C CXX)
  set(CMAKE_${{language}}_ARCHIVE_CREATE "{zig} ar qc <TARGET> <OBJECTS>")
  set(CMAKE_${{language}}_ARCHIVE_APPEND "{zig} ar q <TARGET> <OBJECTS>")
  set(CMAKE_${{language}}_ARCHIVE_FINISH "{zig} ranlib <TARGET>")
endforeach()
# Zig's linker driver writes no dependency file.
set(CMAKE_LINK_DEPENDS_USE_LINKER FALSE)
# Release would add -O3 -DNDEBUG; Zig also wants to be told to keep its checks out.
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")
set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
"""


def _run(command: Sequence[str], what: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        output = (result.stdout + result.stderr)[-8000:]
        raise ToolchainError(f"{what} failed (exit {result.returncode}):\n{output}")
