"""Runtime bundles: what the farm puts on a phone to run packages there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from service.contracts.targets import Abi

RUNNER = "nnfarm_runner"
_VIRTUAL_TARGETS = {Abi.X86_64: "linux-x86_64", Abi.ARM64_V8A: "linux-aarch64"}


class MissingBundleError(Exception):
    """No bundle is built for the phone; the message says how to build it."""


@dataclass(frozen=True)
class RuntimeBundle:
    """One built bundle. `id` changes with any byte of it."""

    target: str
    id: str
    files: tuple[Path, ...]


def find_bundle(runtime_dir: Path, abi: Abi, *, virtual: bool) -> RuntimeBundle:
    """The bundle that runs packages of `abi` on a virtual or a real phone.

    Raises:
        MissingBundleError: it has not been built.
    """
    target = _VIRTUAL_TARGETS.get(abi, "") if virtual else f"android-{abi}"
    if not target:
        raise MissingBundleError(f"virtual phones do not run {abi}")
    folder = runtime_dir / target
    if not (folder / RUNNER).is_file():
        ndk = "" if virtual else "set ANDROID_NDK_HOME and "
        raise MissingBundleError(
            f"no runtime bundle for {target}: {ndk}run python -m device_farm.runtime.build {target}"
        )
    files = tuple(sorted(path for path in folder.iterdir() if path.is_file()))
    stamps = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    return RuntimeBundle(target, _bundle_id(folder, stamps), files)


@lru_cache(maxsize=64)
def _bundle_id(folder: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _, size in stamps:
        digest.update(f"{name}\0{size}\0".encode())
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:32]
