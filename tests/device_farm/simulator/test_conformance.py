"""The Android conformance examples, where a checkout has them beside it.

They are test data, not part of the product: `NNFARM_CONFORMANCE` names their folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEFAULT_FOLDER = Path(__file__).parents[4] / "shared" / "nnapi_conformance"

# One specification of each kind: convolutions, movement, quantization, control of shapes.
SUBSET = (
    "^(conv_float|conv2d_dilation|depthwise_conv2d_quant8|softmax_float_1|add_quant8|mul_relu|"
    "strided_slice_float_2|resize_bilinear|mean_float_1|transpose_v1_2|concat_float_1|"
    "fully_connected_float|batch_matmul|box_with_nms_limit_gaussian)$"
)


@pytest.fixture(scope="session")
def examples() -> Path:
    folder = Path(os.environ.get("NNFARM_CONFORMANCE", DEFAULT_FOLDER))
    if not (folder / "run_cts.py").exists():
        pytest.fail(f"no conformance examples: set NNFARM_CONFORMANCE (looked in {folder})")
    return folder


@pytest.fixture(scope="session")
def driver(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("conformance") / "driver"
    source = examples / "cts_driver.c"
    subprocess.run(["gcc", "-O1", "-w", "-o", program, source, "-ldl"], check=True)
    return program


def run(examples: Path, driver: Path, simulator: Path, *options: str) -> None:
    command = [
        sys.executable,
        examples / "run_cts.py",
        simulator,
        "--driver",
        driver,
        "-j1",
        "--fails",
        *options,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr


@pytest.mark.conformance
@pytest.mark.parametrize("mode", ["sync", "async", "dynamic", "memory", "burst", "reuse"])
def test_all_examples_pass(examples: Path, driver: Path, simulator: Path, mode: str) -> None:
    run(examples, driver, simulator, "--mode", mode)


@pytest.mark.conformance
def test_a_few_examples_pass(examples: Path, driver: Path, simulator: Path) -> None:
    run(examples, driver, simulator, "--spec", SUBSET)
