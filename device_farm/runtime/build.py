"""Builds the device runtime into ``build/runtime/<target>/``; see README.md beside this file.

Usage: ``python -m device_farm.runtime.build TARGET...``
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from device_farm.native import toolchain
from device_farm.runtime import tvm_wheels

RUNNER_VERSION = "0.1.0"

_SOURCE_DIR = Path(__file__).resolve().parent
_BUILD_DIR = _SOURCE_DIR.parents[1] / "build"
_BUNDLE_FILES = (
    *("nnfarm_runner", "libnnfarm_runtime.so", "nnfarm_runtime.h"),
    *("libnnfarm_nnapi.so", "libtvm_runtime.so", "libtvm_ffi.so"),
)

# Wheels with TVM's libraries, by platform tag; empty: the installed ones. The other targets have
# none, or build them from the wheels' sources to try just that.
_WHEEL_PLATFORMS = {
    "linux-x86_64": "",
    "linux-aarch64": "manylinux_2_28_aarch64",
    "sanitize": "",
}
TARGETS = toolchain.presets(_SOURCE_DIR)
"""What `build` takes: the presets of CMakePresets.json."""


def build(name: str, build_dir: Path = _BUILD_DIR) -> Path:
    """Builds one target and puts its bundle together.

    Args:
        name: one of `TARGETS`.
        build_dir: the repository's build folder.

    Returns:
        The bundle, ``<build_dir>/runtime/<name>``.

    Raises:
        ToolchainError: unknown target, a missing tool or NDK, or a failed build.
        WheelError: TVM's wheels for this target cannot be had.
    """
    cmake_dir = build_dir / "runtime" / ".cmake" / name
    libraries = cmake_dir / "bundle"
    if name in _WHEEL_PLATFORMS:
        libraries = tvm_wheels.libraries(_WHEEL_PLATFORMS[name], build_dir / "wheels")
    args = [
        f"-DNNFARM_VERSION={RUNNER_VERSION}",
        f"-DNNFARM_TVM_FFI_DIR={tvm_wheels.package_dir('tvm_ffi')}",
        f"-DNNFARM_TVM_DIR={tvm_wheels.package_dir('tvm')}",
        f"-DNNFARM_TVM_LIBRARY_DIR={libraries if name in _WHEEL_PLATFORMS else ''}",
    ]
    toolchain.build(_SOURCE_DIR, cmake_dir, name, args)
    bundle = build_dir / "runtime" / name
    _assemble(name, bundle, (cmake_dir / "bundle", libraries, _SOURCE_DIR / "api"))
    return bundle


def _assemble(name: str, bundle: Path, sources: Sequence[Path]) -> None:
    bundle.mkdir(parents=True, exist_ok=True)
    digests: dict[str, str] = {}
    for file_name in _BUNDLE_FILES:
        source = next(folder / file_name for folder in sources if (folder / file_name).exists())
        destination = bundle / file_name
        # A rename, so that a runner that is being executed keeps its file.
        partial = destination.with_suffix(".part")
        shutil.copyfile(source, partial)
        partial.chmod(0o755)
        partial.replace(destination)
        digests[file_name] = hashlib.sha256(destination.read_bytes()).hexdigest()
    description = {
        "format": "nnfarm.runtime",
        "target": name,
        "versions": {"nnfarm_runner": RUNNER_VERSION, **tvm_wheels.versions()},
        "sha256": digests,
    }
    (bundle / "bundle.json").write_text(json.dumps(description, indent=2, sort_keys=True) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds the targets named on the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build the device runtime.")
    parser.add_argument("targets", nargs="+", metavar="TARGET", help=", ".join(TARGETS))
    for name in parser.parse_args(arguments).targets:
        try:
            sys.stdout.write(f"{build(name)}\n")
        except (toolchain.ToolchainError, tvm_wheels.WheelError) as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
