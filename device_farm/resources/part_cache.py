"""Parts and evaluation sets that were downloaded, by their SHA-256, on the agent's disk."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from service.contracts.errors import NnfarmError

Download = Callable[[str], Iterator[bytes]]
"""Gives the bytes of the blob with that SHA-256."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class PartCache:
    """A folder of files named by their hash; the least recently used go when it is full.

    Safe for several threads: a file appears under its name only when it is whole and checked.
    """

    def __init__(self, folder: Path, max_bytes: int = 4 * 1024**3) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._lock = threading.Lock()  # between looking for a file and evicting it
        folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, sha256: str, download: Download) -> Path:
        """The file with that hash, downloaded when it is not there yet.

        Raises:
            NnfarmError: `infra.storage` when the bytes do not match their name; what `download`
                raises.
        """
        if not _SHA256.fullmatch(sha256):
            raise NnfarmError("run.bad_package", f"{sha256!r} is no SHA-256")
        path = self._folder / sha256
        with self._lock:
            if path.exists():
                os.utime(path)  # for the order of eviction
                return path
        self._download(path, download)
        with self._lock:
            self._evict(keep=path)
        return path

    def _download(self, path: Path, download: Download) -> None:
        digest = hashlib.sha256()
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".part-")
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as sink:
                for chunk in download(path.name):
                    digest.update(chunk)
                    sink.write(chunk)
            if digest.hexdigest() != path.name:
                raise NnfarmError(
                    "infra.storage",
                    f"Blob {path.name} came with other bytes ({digest.hexdigest()}).",
                )
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _evict(self, keep: Path) -> None:
        found = [(p.stat().st_mtime, p.stat().st_size, p) for p in self._files()]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found, key=lambda entry: entry[0]):
            if total <= self._max_bytes:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                total -= size

    def _files(self) -> list[Path]:
        return [path for path in self._folder.iterdir() if _SHA256.fullmatch(path.name)]
