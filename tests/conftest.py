"""Options, native parts and the browser that all tests share."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

BUILD = Path(__file__).parents[1] / "build"
CHROMIUM = Path("/usr/bin/chromium")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden", action="store_true", help="rewrite golden files from today's output"
    )


def _has_arm64() -> bool:
    has_qemu = shutil.which("qemu-aarch64-static") is not None
    return has_qemu and Path("/usr/aarch64-linux-gnu/lib").is_dir()


def _has_postgres() -> bool:
    return any(Path("/usr/lib/postgresql").glob("*/bin"))


def _has_clang() -> bool:
    names = ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1)))
    return any(shutil.which(name) for name in names)


NEEDS: Mapping[str, tuple[str, Callable[[], object]]] = {
    "arm64": ("qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross", _has_arm64),
    "browser": ("chromium", lambda: shutil.which("chromium")),
    "postgres": ("postgresql", _has_postgres),
    "redis": ("redis-server", lambda: shutil.which("redis-server")),
    "gcc": ("g++", lambda: shutil.which("g++")),
    "clang": ("clang libclang-rt-14-dev", _has_clang),
}
"""Markers of tests that need Debian packages: which, and whether they are there."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, with the reason, what needs a package that could not be installed."""
    missing = {marker: packages for marker, (packages, is_there) in NEEDS.items() if not is_there()}
    for item in items:
        for marker in missing.keys() & {mark.name for mark in item.iter_markers()}:
            reason = f"needs the Debian packages {missing[marker]} (make system-packages)"
            item.add_marker(pytest.mark.skip(reason=reason))


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium. One for all: Playwright refuses a second one in the same process."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: run `make system-packages`")
    with sync_playwright() as playwright:
        # The pages are our own; containers often run as root, where Chromium's sandbox cannot.
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-background-networking"]
        )
        yield started
        started.close()
