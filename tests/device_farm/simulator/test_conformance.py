"""The Android conformance examples, where a checkout has them beside it.

They are test data from another project, so they are not part of this repository. All of them run,
every way an execution can be made: half a minute on two cores. `NNFARM_CONFORMANCE` names another
folder to take them from.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[4] / "shared" / "nnapi_conformance"
NAMED = os.environ.get("NNFARM_CONFORMANCE", "")

# It needs FarmHash, which the simulator does not have.
OFFERED = "^(?!lsh_projection)"


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
        [*command, "-j2", "--fails", *options], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr


@pytest.mark.parametrize("mode", ["sync", "async", "dynamic", "memory", "burst", "reuse"])
def test_all_examples_pass(examples: Path, driver: Path, simulator: Path, mode: str) -> None:
    run(examples, driver, simulator, "--mode", mode, "--spec", OFFERED)
