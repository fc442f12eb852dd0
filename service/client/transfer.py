"""Files on their way: hashed, counted for a progress bar, checked on arrival."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from service.contracts.artifacts import Manifest
from service.contracts.errors import NnfarmError

OnBytes = Callable[[int, int], None]
"""Called with (bytes so far, bytes in all) while a file moves."""

_CHUNK_BYTES = 1 << 20


def ignore_bytes(done: int, total: int) -> None:
    """The progress callback of a caller that shows none."""


def sha256_of(stream: IO[bytes]) -> str:
    """SHA-256 of what is left in a stream, in hexadecimal."""
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


class CountedFile:
    """A file for a streamed upload that tells how much of it has been read.

    It is seekable, so that a retried upload starts again from the first byte.
    """

    def __init__(self, file: IO[bytes], on_bytes: OnBytes) -> None:
        self._file = file
        self._on_bytes = on_bytes
        self._total = os.fstat(file.fileno()).st_size

    def fileno(self) -> int:
        """The descriptor, by which the HTTP library learns the size."""
        return self._file.fileno()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; see `io.IOBase.seek`."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The position in bytes."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, counted."""
        chunk = self._file.read(size)
        self._on_bytes(self._file.tell(), self._total)
        return chunk


def write_package(
    chunks: Iterable[bytes], path: Path, expected_bytes: int, on_bytes: OnBytes = ignore_bytes
) -> None:
    """Write a download; the file bears its name only when it is complete.

    Raises:
        NnfarmError: `infra.unavailable` when fewer or more bytes came than were announced.
    """
    _write(chunks, path, expected_bytes, on_bytes, check_package)


def write_checked(
    chunks: Iterable[bytes],
    path: Path,
    expected_bytes: int,
    expected_sha256: str,
    on_bytes: OnBytes = ignore_bytes,
) -> None:
    """Write a download whose hash is known; the file bears its name only when it is complete.

    Raises:
        NnfarmError: `infra.unavailable` when fewer or more bytes came than were announced,
            `request.hash_mismatch` when other bytes came.
    """

    def check(file: Path) -> None:
        with file.open("rb") as stream:
            if sha256_of(stream) != expected_sha256:
                raise NnfarmError(
                    "request.hash_mismatch", f"{path.name}: other bytes came than were asked for"
                )

    _write(chunks, path, expected_bytes, on_bytes, check)


def _write(
    chunks: Iterable[bytes],
    path: Path,
    expected_bytes: int,
    on_bytes: OnBytes,
    check: Callable[[Path], object],
) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    done = 0
    try:
        with partial.open("wb") as out:
            for chunk in chunks:
                out.write(chunk)
                done += len(chunk)
                on_bytes(done, expected_bytes)
        if done != expected_bytes:
            raise NnfarmError(
                "infra.unavailable",
                f"{path.name}: the download broke off at {done} of {expected_bytes} bytes",
            )
        check(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def check_package(path: Path) -> Manifest:
    """The manifest of a package whose every part has the SHA-256 the manifest gives it.

    Raises:
        NnfarmError: `request.hash_mismatch` naming the part, also where the file is no package.
    """
    try:
        with zipfile.ZipFile(path) as package:
            manifest = Manifest.model_validate_json(package.read("manifest.json"))
            for part in manifest.parts:
                with package.open(part.path) as stream:
                    if sha256_of(stream) != part.sha256:
                        raise NnfarmError(
                            "request.hash_mismatch",
                            f"{part.path} of the package is not what its manifest names",
                            part=part.path,
                        )
    except (zipfile.BadZipFile, KeyError, ValidationError) as error:
        raise NnfarmError(
            "request.hash_mismatch", f"the download is not a whole package: {error}"
        ) from error
    return manifest
