"""Builds the simulator: ``python -m device_farm.simulator.build linux-x86_64 linux-aarch64``.

The result is ``build/simulator/<target>/libneuralnetworks.so`` below the repository.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from device_farm.native.toolchain import ToolchainError, build, presets

SOURCE_DIR = Path(__file__).resolve().parent
BUILD_ROOT = SOURCE_DIR.parents[1] / "build" / "simulator"
LIBRARY_NAME = "libneuralnetworks.so"
SIMULATOR_TARGETS = presets(SOURCE_DIR)


def build_simulator(target: str, build_root: Path = BUILD_ROOT) -> Path:
    """Builds the library for one target; cheap when nothing changed.

    Args:
        target: one of `SIMULATOR_TARGETS`.
        build_root: parent of the target's build folder.

    Returns:
        Path of the library.

    Raises:
        ToolchainError: a tool is missing or the build failed.
    """
    return build(SOURCE_DIR, build_root / target, target) / LIBRARY_NAME


def main() -> int:
    """Builds the targets named on the command line."""
    parser = argparse.ArgumentParser(description="Build the NNAPI simulator.")
    parser.add_argument("targets", nargs="+", choices=SIMULATOR_TARGETS, metavar="TARGET")
    for target in parser.parse_args().targets:
        try:
            library = build_simulator(target)
        except ToolchainError as error:
            print(error, file=sys.stderr)
            return 1
        print(library)
    return 0


if __name__ == "__main__":
    sys.exit(main())
