"""The Android conformance examples, where a checkout has them beside it.

They are test data from another project, so they are not part of this repository. Beside it a subset
runs with every test run; naming their folder in `NNFARM_CONFORMANCE` runs all of them, every way an
execution can be made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[4] / "shared" / "nnapi_conformance"
NAMED = os.environ.get("NNFARM_CONFORMANCE", "")

# One specification of each kind: convolutions, movement, quantization, shapes known at run time.
SUBSET = (
    "^(conv_float|conv2d_dilation|depthwise_conv2d_quant8|softmax_float_1|add_quant8|mul_relu"
    "|strided_slice_float_2|resize_bilinear|mean_float_1|concat_float_1|fully_connected_float"
    "|batch_matmul|box_with_nms_limit_gaussian|lstm)$"
)
# They need FarmHash and 16-bit fixed-point cells, which the simulator does not have.
MISSING = "^(?!lsh_projection|qlstm|quantized_lstm)"


@pytest.fixture(scope="session")
def examples() -> Path:
    folder = Path(NAMED) if NAMED else BESIDE
    if not NAMED and not folder.exists():
        pytest.skip("the conformance examples are not beside this checkout")
    if not (folder / "run_cts.py").exists():
        pytest.fail(f"no conformance examples in {folder}", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def driver(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("conformance") / "driver"
    source = examples / "cts_driver.c"
    subprocess.run(["gcc", "-O1", "-w", "-o", program, source, "-ldl"], check=True)
    return program


def run(examples: Path, driver: Path, simulator: Path, *options: str) -> None:
    command = [sys.executable, examples / "run_cts.py", simulator, "--driver", driver]
    result = subprocess.run(
        [*command, "-j1", "--fails", *options], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr


def test_a_few_examples_pass(examples: Path, driver: Path, simulator: Path) -> None:
    run(examples, driver, simulator, "--spec", SUBSET)


@pytest.mark.skipif(not NAMED, reason="NNFARM_CONFORMANCE names no folder: all examples")
@pytest.mark.parametrize("mode", ["sync", "async", "dynamic", "memory", "burst", "reuse"])
def test_all_examples_pass(examples: Path, driver: Path, simulator: Path, mode: str) -> None:
    run(examples, driver, simulator, "--mode", mode, "--spec", MISSING)
