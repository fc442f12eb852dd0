"""Options and native parts that all tests share."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[1] / "build"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden", action="store_true", help="rewrite golden files from today's output"
    )


def _built(path: Path) -> Path:
    if not path.exists():
        pytest.fail(f"{path.name} is not built: run `make native`", pytrace=False)
    return path


@pytest.fixture(scope="session")
def player_library() -> Path:
    """The NNAPI player for this machine."""
    target = f"linux-{platform.machine()}"
    return _built(BUILD / "runtime" / target / "libnnfarm_nnapi.so")


@pytest.fixture(scope="session")
def simulator_dir() -> Path:
    """Folder of the simulator's libneuralnetworks.so for this machine."""
    return _built(
        BUILD / "simulator" / f"linux-{platform.machine()}" / "libneuralnetworks.so"
    ).parent
