"""A job's folder, read as what it is: written by a process nobody trusts.

The child may have left symbolic links, pipes, huge files or nonsense. Everything is opened without
following links, checked to be a plain file, bounded in size, and blobs are hashed here.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ValidationError

from service.contracts.errors import NnfarmError, Problem
from service.contracts.jobs import StageEvent
from workers.job_kind import JobKind, Outcome

_LOG_TAIL_BYTES = 16 * 1024
_MAX_EVENT_BYTES = 64 * 1024
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024  # an outcome holds manifests only; reports are blobs
_CHUNK_BYTES = 1024 * 1024
_BLOB_NAME = re.compile(r"[0-9a-f]{64}")

logger = logging.getLogger(__name__)

_Message = TypeVar("_Message", bound=BaseModel)


class JobFolder(Generic[Outcome]):
    """Reads what a child wrote.

    Log and events are created and opened before the child starts; whatever it puts under their
    names later is not looked at.

    Args:
        path: the job's folder; exists.
        kind: of the job.
    """

    def __init__(self, path: Path, kind: JobKind[Any, Outcome]) -> None:
        self._path = path
        self._kind = kind
        self._log = (path / "child.log").open("w+b")
        self._events = (path / "events.jsonl").open("w+b", buffering=0)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        self._events.close()

    def log_tail(self) -> str:
        """The end of the child's output, at most 16 KiB."""
        size = os.fstat(self._log.fileno()).st_size
        self._log.seek(max(0, size - _LOG_TAIL_BYTES))
        return self._log.read(_LOG_TAIL_BYTES).decode(errors="replace")

    def new_events(self) -> Iterator[StageEvent]:
        """Events written since the last call; a line that is none is logged and dropped."""
        while chunk := self._events.read(_CHUNK_BYTES):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                try:
                    yield StageEvent.model_validate_json(line)
                except ValidationError as error:
                    logger.warning("The child wrote a bad event: %s", error)
            if len(self._rest) > _MAX_EVENT_BYTES:
                logger.warning("The child wrote an event of more than %d bytes", _MAX_EVENT_BYTES)
                self._rest = b""

    def problem(self) -> Problem | None:
        """The error the child reported, if it did."""
        return self._message("problem.json", Problem)

    def outcome(self) -> Outcome | None:
        """What the child says it built; its blobs are still to be checked."""
        return self._message("outcome.json", self._kind.outcome)

    def checked_blobs(self, outcome: Outcome) -> dict[str, Path]:
        """Files of all blobs that `outcome` names, by SHA-256, each hashed.

        Raises:
            NnfarmError: `<area>.crashed`, a blob is missing, no plain file, or not what its name
                and the outcome say.
        """
        sizes = outcome.blob_sizes()
        return {sha256: self._checked_blob(sha256, size) for sha256, size in sizes.items()}

    def _checked_blob(self, sha256: str, size_bytes: int | None) -> Path:
        if not _BLOB_NAME.fullmatch(sha256):
            raise self._bad_child(f"{sha256[:80]!r} is not a SHA-256")
        try:
            folder = os.open(self._path / "blobs", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                with _open_plain(sha256, folder) as file:
                    found = os.fstat(file.fileno()).st_size
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            finally:
                os.close(folder)
        except OSError as error:
            raise self._bad_child(
                f"blob {sha256} is not readable as a plain file ({error})"
            ) from error
        if digest != sha256 or size_bytes not in (None, found):
            raise self._bad_child(f"blob {sha256} has {found} bytes with the SHA-256 {digest}")
        return self._path / "blobs" / sha256

    def _message(self, name: str, model: type[_Message]) -> _Message | None:
        try:
            with _open_plain(str(self._path / name)) as file:
                text = file.read(_MAX_MESSAGE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._bad_child(f"{name} is not readable as a plain file ({error})") from error
        if len(text) > _MAX_MESSAGE_BYTES:
            raise self._bad_child(f"{name} has more than {_MAX_MESSAGE_BYTES} bytes")
        try:
            return model.model_validate_json(text)
        except ValidationError as error:
            raise self._bad_child(f"{name} is not valid ({error})") from error

    def _bad_child(self, what: str) -> NnfarmError:
        sentence = f"The {self._kind.actor}'s result cannot be trusted: {what}."
        return NnfarmError(f"{self._kind.area}.crashed", sentence)


def _open_plain(path: str, folder: int | None = None) -> BufferedReader:
    # O_NONBLOCK: opening a pipe would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{Path(path).name} is not a plain file")
    return os.fdopen(descriptor, "rb")
