import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Fakes are importable by name, in the fork server too: it takes this process's sys.path.
sys.path.insert(0, str(Path(__file__).parent / "fakes"))

from fake_service import FakeService, serve

from tests.workers.properties.phone import Phone


@pytest.fixture(scope="session")
def native_dir() -> Path:
    # Kept between runs: the stub store is content-addressed, so a stale set is never used.
    folder = Path(__file__).parents[2] / "build" / "worker-tests"
    # The fake child never loads it; the worker only wants it to be there.
    player = folder / "runtime" / f"linux-{platform.machine()}" / "libnnfarm_nnapi.so"
    player.parent.mkdir(parents=True, exist_ok=True)
    player.touch()
    return folder


@pytest.fixture(scope="session")
def stub_dir(native_dir: Path) -> Path:
    return native_dir / "toolchain"


@pytest.fixture(scope="session")
def phone(
    tmp_path_factory: pytest.TempPathFactory, player_library: Path, simulator_dir: Path
) -> Iterator[Phone]:
    """A phone with a device of every level, and the compiler, in a process of their own."""
    phone = Phone(tmp_path_factory.mktemp("phone"), player_library, simulator_dir)
    yield phone
    phone.close()


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serve() as state:
        yield state


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.service_client._FIRST_PAUSE_S", 0.001)
