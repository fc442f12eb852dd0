"""The package of an artifact: a zip put together while it is streamed.

Stored, aligned, with fixed times and a known length: the same artifact always gives the same
bytes. See docs/reference/package.md; the padding is done in the extra field, as zipalign does.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from service.contracts.artifacts import Manifest, Sha256
from service.contracts.errors import NnfarmError
from service.resources.blobs.tables import BlobRow

MANIFEST_NAME = "manifest.json"
_PAGE_BYTES = 4096
_LIBRARY_PAGE_BYTES = 16384
_MAX_ZIP_BYTES = (1 << 32) - 1  # Android's installers and many readers know no zip64

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_ALIGNMENT = struct.Struct("<3H")  # id, size of what follows, alignment; then zeros
_ALIGNMENT_ID = 0xD935  # Android's, as written by zipalign and apksigner
_VERSION = 20
_DOS_DATE = (1 << 5) | 1  # 1980-01-01, the zero of zip times
_MODE = 0o100644 << 16
_MADE_BY_UNIX = 3 << 8


@dataclass(frozen=True)
class _Member:
    name: bytes
    crc32: int
    size_bytes: int
    sha256: Sha256 | None  # None: the manifest
    header_offset: int
    header: bytes

    @property
    def data_offset(self) -> int:
        return self.header_offset + len(self.header)

    @property
    def end(self) -> int:
        return self.data_offset + self.size_bytes


class Package:
    """Where every byte of an artifact's zip goes, computed before the first is sent.

    Args:
        manifest: the artifact's manifest.
        blobs: what is known of the parts, by hash.
    """

    def __init__(self, manifest: Manifest, blobs: Mapping[Sha256, BlobRow]) -> None:
        self._manifest = manifest_bytes(manifest)
        members = [_member(MANIFEST_NAME, zlib.crc32(self._manifest), len(self._manifest), None, 0)]
        for part in manifest.parts:
            crc32 = blobs[part.sha256].crc32
            members.append(_member(part.path, crc32, part.size_bytes, part.sha256, members[-1].end))
        self._members = members
        self._tail = _directory(members)
        if self.size_bytes > _MAX_ZIP_BYTES:
            raise NnfarmError(
                "compile.limit_exceeded",
                f"The package would have {self.size_bytes} bytes; {_MAX_ZIP_BYTES} are possible.",
            )

    @property
    def size_bytes(self) -> int:
        """Length of the whole zip."""
        return self._members[-1].end + len(self._tail)

    @property
    def etag(self) -> str:
        """Changes exactly when the bytes do: the manifest names every part by its hash."""
        return f'"{hashlib.sha256(self._manifest).hexdigest()}"'

    def stream(self, read: Callable[[Sha256], Iterator[bytes]]) -> Iterator[bytes]:
        """The zip in pieces.

        Args:
            read: opens a part.
        """
        for member in self._members:
            yield member.header
            if member.sha256 is None:
                yield self._manifest
            else:
                yield from read(member.sha256)
        yield self._tail


def manifest_bytes(manifest: Manifest) -> bytes:
    """manifest.json: indented for people, keys sorted for reproducibility."""
    content = manifest.model_dump(mode="json")
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def _member(path: str, crc32: int, size_bytes: int, sha256: Sha256 | None, offset: int) -> _Member:
    name = path.encode("ascii")
    alignment = _LIBRARY_PAGE_BYTES if path.endswith(".so") else _PAGE_BYTES
    unpadded = offset + _LOCAL.size + len(name) + _ALIGNMENT.size
    padding = -unpadded % alignment
    extra = _ALIGNMENT.pack(_ALIGNMENT_ID, 2 + padding, alignment) + bytes(padding)
    fields = (_VERSION, 0, 0, 0, _DOS_DATE, crc32, size_bytes, size_bytes, len(name), len(extra))
    header = _LOCAL.pack(b"PK\x03\x04", *fields) + name + extra
    return _Member(name, crc32, size_bytes, sha256, offset, header)


def _directory(members: list[_Member]) -> bytes:
    records = b"".join(_central_record(member) for member in members)
    count = len(members)
    end = _END.pack(b"PK\x05\x06", 0, 0, count, count, len(records), members[-1].end, 0)
    return records + end


def _central_record(member: _Member) -> bytes:
    size = member.size_bytes
    versions = (_MADE_BY_UNIX | _VERSION, _VERSION)
    sizes = (member.crc32, size, size, len(member.name))
    rest = (0, 0, 0, 0, _MODE, member.header_offset)
    return _CENTRAL.pack(b"PK\x01\x02", *versions, 0, 0, 0, _DOS_DATE, *sizes, *rest) + member.name
