"""A short run of the fuzzers, always the same; `make fuzz` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from device_farm.runtime.fuzz import run
from device_farm.runtime.fuzz.seeds import write_seeds

# The first run compiles the readers with all their instrumentation.
pytestmark = [pytest.mark.clang, pytest.mark.timeout(1200)]

SECONDS = 3
SEED = 20_240_511


@pytest.fixture(scope="module", autouse=True)
def fuzzers() -> None:
    run.build()


@pytest.mark.parametrize("name", run.FUZZERS)
def test_nothing_is_found(name: str) -> None:
    result = run.fuzz(name, SECONDS, SEED)
    assert result.executions > 1000


def test_seeds_are_real_documents(tmp_path: Path) -> None:
    seeds = write_seeds(tmp_path)
    assert set(seeds) == set(run.FUZZERS)
    assert len(list(seeds["encoded_model"].iterdir())) > 50
