"""Content-addressed results in the job's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from service.contracts.artifacts import Part, PartRole


class BlobFolder:
    """`blobs/<sha256>` under the job's folder; the worker uploads what it finds there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, data: bytes) -> str:
        """Store bytes; gives their SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        target = self._folder / digest
        if not target.exists():
            target.write_bytes(data)
        return digest

    def add_file(self, path: Path) -> str:
        """Move a file in; gives its SHA-256."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        path.rename(self._folder / digest)
        return digest

    def add_tensors(self, tensors: Mapping[str, NDArray[Any]]) -> str:
        """Store arrays as one safetensors file."""
        return self.add(save({n: np.ascontiguousarray(a) for n, a in tensors.items()}))

    def part(self, role: PartRole, name: str, sha256: str) -> Part:
        """A package part of a stored blob."""
        size = (self._folder / sha256).stat().st_size
        return Part(role=role, path=name, sha256=sha256, size_bytes=size)
