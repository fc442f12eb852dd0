"""Models and datasets on this machine, by content."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

Download = Callable[[str, Path], None]
"""Writes the blob of a SHA-256 to a path, checked."""


class InputCache:
    """Downloaded blobs; one folder may serve several workers.

    Nothing is ever dropped: an operator may delete any file at any time.

    Args:
        folder: where the blobs are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def copy(self, sha256: str, path: Path, download: Download) -> None:
        """Puts a copy of a blob at `path`, downloading it where it is missing.

        A copy, not a link, and checked at every use: what a job does to its file must not reach
        the next job.
        """
        kept = self._folder / sha256
        if _copy_checked(kept, path, sha256):
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".", dir=self._folder)
        os.close(descriptor)
        fresh = Path(name)
        try:
            download(sha256, fresh)
            shutil.copyfile(fresh, path)
            fresh.replace(kept)
        finally:
            fresh.unlink(missing_ok=True)


def _copy_checked(source: Path, target: Path, sha256: str) -> bool:
    try:
        shutil.copyfile(source, target, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if target.is_symlink():
        target.unlink()
        return False
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256
