"""Builds the fuzzers and runs them: ``python -m device_farm.runtime.fuzz.run [--minutes N]``.

Needs Clang with its fuzzer and sanitizer libraries (Debian: clang, libclang-rt-14-dev); the
project's other compilers have neither. What a fuzzer finds stays in ``build/fuzz/<name>/`` as
``crash-*``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from device_farm.native.toolchain import BUILD_JOBS, ToolchainError, find_tool
from device_farm.runtime import tvm_wheels
from device_farm.runtime.fuzz.seeds import write_seeds

FUZZERS = ("encoded_model", "manifest", "json")

_SOURCE_DIR = Path(__file__).resolve().parent
_BUILD_DIR = _SOURCE_DIR.parents[2] / "build" / "fuzz"
_MOST_BYTES = 8192
_INPUT_TIMEOUT_S = 10
_COMPILERS = ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1)))
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


class FuzzError(RuntimeError):
    """A fuzzer found something; the message is its last words."""


@dataclass(frozen=True)
class FuzzResult:
    """What one fuzzer did without finding anything."""

    name: str
    executions: int
    seconds: int


def build(build_dir: Path = _BUILD_DIR) -> Path:
    """Builds the fuzzers.

    Returns:
        The folder of the executables, ``fuzz_<name>``.

    Raises:
        ToolchainError: no Clang, no fuzzer library, or a failed build.
    """
    folder = build_dir / ".cmake"
    folder.mkdir(parents=True, exist_ok=True)
    configure = [
        *(find_tool("cmake"), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}"),
        *("-S", str(_SOURCE_DIR), "-B", str(folder), f"-DCMAKE_CXX_COMPILER={_clang()}"),
        f"-DNNFARM_TVM_FFI_DIR={tvm_wheels.package_dir('tvm_ffi')}",
    ]
    _run(configure)
    _run([find_tool("cmake"), "--build", str(folder), "--parallel", str(BUILD_JOBS)])
    return folder


def fuzz(name: str, seconds: int, seed: int = 0, build_dir: Path = _BUILD_DIR) -> FuzzResult:
    """Runs one fuzzer, which `build` has made, on the seeds and on what earlier runs learned.

    Args:
        name: one of `FUZZERS`.
        seconds: how long.
        seed: of the fuzzer's random numbers; 0: another one each time.
        build_dir: as of `build`.

    Raises:
        FuzzError: it found something.
    """
    folder = build_dir / name
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    seeds = write_seeds(build_dir / "seeds")[name]
    command = [
        *(str(build_dir / ".cmake" / f"fuzz_{name}"), "corpus", str(seeds)),
        f"-dict={_SOURCE_DIR / 'words.dict'}",
        *(f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={_MOST_BYTES}"),
        *(f"-timeout={_INPUT_TIMEOUT_S}", "-print_final_stats=1"),
    ]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    executed = _EXECUTED.search(finished.stderr)
    if finished.returncode != 0 or executed is None:
        raise FuzzError(f"fuzz_{name}: exit {finished.returncode}\n{finished.stderr[-4000:]}")
    return FuzzResult(name, int(executed.group(1)), seconds)


def _clang() -> str:
    for name in _COMPILERS:
        if path := shutil.which(name):
            return path
    raise ToolchainError("the fuzzers need Clang: apt-get install clang libclang-rt-14-dev")


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ToolchainError(
            f"building the fuzzers failed:\n{result.stdout[-8000:]}{result.stderr}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs every fuzzer in turn for its share of the time; returns the exit status."""
    parser = argparse.ArgumentParser(description="Fuzz what the device runtime reads.")
    parser.add_argument("--minutes", type=float, default=30.0, help="of all together; default 30")
    seconds = int(parser.parse_args(arguments).minutes * 60 / len(FUZZERS))
    try:
        build()
        for name in FUZZERS:
            result = fuzz(name, seconds)
            sys.stdout.write(f"{name}: {result.executions} executions in {seconds} s\n")
            sys.stdout.flush()
    except (ToolchainError, tvm_wheels.WheelError, FuzzError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
