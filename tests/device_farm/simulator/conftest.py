"""The simulator, loaded as one phone or another."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from device_farm.simulator.build import build_simulator
from tests.device_farm.simulator.nnapi import Library

LoadPhone = Callable[[str], Library]


@pytest.fixture(scope="session")
def simulator() -> Path:
    """The library for this machine; a build that is up to date takes no time."""
    return build_simulator("linux-x86_64")


@pytest.fixture(scope="session")
def library(simulator: Path) -> Library:
    """The phone without a profile: level 8, the reference device only."""
    return Library(simulator)


@pytest.fixture
def load_phone(simulator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadPhone:
    """Loads another instance of the library, with a profile of its own."""

    def load(profile: str) -> Library:
        (tmp_path / "profile").write_text(profile)
        monkeypatch.setenv("NNFARM_SIM_PROFILE", str(tmp_path / "profile"))
        # The profile is read once for each loaded file, so every phone needs a file of its own.
        copy = Path(
            shutil.copy(simulator, tmp_path / f"libphone{len(list(tmp_path.iterdir()))}.so")
        )
        phone = Library(copy)
        assert phone.feature_level > 0  # reads the profile before the environment changes again
        return phone

    return load
