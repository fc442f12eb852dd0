"""Blobs in a local folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from service.contracts.errors import NnfarmError
from service.storage.incoming import StagedBlob
from service.storage.store import CHUNK_BYTES


class LocalStore:
    """One file a blob, in folders by the first two digits of its hash."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._staging = root / "incoming"
        self._staging.mkdir(parents=True, exist_ok=True)

    @property
    def staging_dir(self) -> Path:
        """Inside the store, so that taking a blob over is a rename."""
        return self._staging

    def put(self, staged: StagedBlob) -> None:
        """Rename the staged file to its place, durably."""
        target = self._path(staged.sha256)
        try:
            target.parent.mkdir(exist_ok=True)
            staged.path.replace(target)
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise _storage_error(error) from error

    def size(self, sha256: str) -> int | None:
        """Size of the file."""
        try:
            return self._path(sha256).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _storage_error(error) from error

    def read(self, sha256: str) -> Iterator[bytes]:
        """The file in pieces."""
        try:
            file = self._path(sha256).open("rb")
        except FileNotFoundError:
            raise NnfarmError("request.not_found", f"There is no blob {sha256}.") from None
        except OSError as error:
            raise _storage_error(error) from error
        return _pieces(file)

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _storage_error(error: OSError) -> NnfarmError:
    return NnfarmError("infra.storage", f"The blob folder failed: {error.strerror}.")
