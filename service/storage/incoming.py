"""Bytes on their way in: counted and hashed while they are written to a file."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from service.contracts.errors import NnfarmError


@dataclass(frozen=True)
class StagedBlob:
    """A complete local file with what is known of it."""

    path: Path
    sha256: str
    crc32: int
    size_bytes: int


class Incoming:
    """Receives one blob; use as a context manager, which removes the file unless it was taken.

    Args:
        folder: where the file is written.
        limit_bytes: the most it may hold.
        too_large: makes the error for one byte more.
    """

    def __init__(
        self, folder: Path, limit_bytes: int, too_large: Callable[[int], NnfarmError]
    ) -> None:
        self._limit_bytes = limit_bytes
        self._too_large = too_large
        self._hash = hashlib.sha256()
        self._crc32 = 0
        self._size_bytes = 0
        handle, name = tempfile.mkstemp(prefix="incoming-", dir=folder)
        self._path = Path(name)
        self._file = os.fdopen(handle, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """Add bytes; the limit is checked before they are kept."""
        self._size_bytes += len(chunk)
        if self._size_bytes > self._limit_bytes:
            raise self._too_large(self._limit_bytes)
        self._hash.update(chunk)
        self._crc32 = zlib.crc32(chunk, self._crc32)
        self._file.write(chunk)

    def finish(self, expected_sha256: str | None = None) -> StagedBlob:
        """Close the file durably.

        Args:
            expected_sha256: what the sender says the bytes are, if it says anything.

        Raises:
            NnfarmError: ``request.hash_mismatch``.
        """
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        sha256 = self._hash.hexdigest()
        if expected_sha256 is not None and expected_sha256.lower() != sha256:
            raise NnfarmError(
                "request.hash_mismatch",
                f"The {self._size_bytes} bytes received hash to {sha256}, not to "
                f"{expected_sha256.lower()}.",
                received=sha256,
                expected=expected_sha256.lower(),
            )
        return StagedBlob(self._path, sha256, self._crc32, self._size_bytes)
