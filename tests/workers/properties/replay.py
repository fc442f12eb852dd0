"""Runs a failing example of the property tests again.

python -m tests.workers.properties.replay FOLDER LEVEL

The folder is the one the failure names; it has model.onnx and inputs.npz.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

from tests.conftest import BUILD
from tests.workers.properties.phone import Phone


def main(folder: Path, level: int) -> None:
    """Compile, play, compare; a difference ends in an AssertionError."""
    with np.load(folder / "inputs.npz") as arrays:
        inputs = dict(arrays)
    with tempfile.TemporaryDirectory() as scratch:
        phone = Phone(
            Path(scratch),
            BUILD / "runtime" / "linux-x86_64" / "libnnfarm_nnapi.so",
            BUILD / "simulator" / "linux-x86_64",
        )
        try:
            answer = phone.compare(onnx.load(folder / "model.onnx"), inputs, level)
        finally:
            phone.close()
    print(f"level {level}: {answer.lowered}, on the CPU: {answer.rejected}; as ONNX Runtime")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
