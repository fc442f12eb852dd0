"""What a blob store can do, and which one a URL means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from service.storage.incoming import StagedBlob

CHUNK_BYTES = 1 << 20


class BlobStore(Protocol):
    """Blobs by their SHA-256. Writing is atomic: a blob is there whole or not at all.

    Failures of the store itself are ``infra.storage``.
    """

    @property
    def staging_dir(self) -> Path:
        """Local folder for blobs on their way in."""
        ...

    def put(self, staged: StagedBlob) -> None:
        """Take over a staged blob; its file may be moved away. The same blob twice is fine."""
        ...

    def size(self, sha256: str) -> int | None:
        """Size in bytes, or None when there is no such blob."""
        ...

    def read(self, sha256: str) -> Iterator[bytes]:
        """The blob in pieces. It is opened before this returns, so a missing one raises here.

        Raises:
            NnfarmError: ``request.not_found``.
        """
        ...


def open_store(url: str, s3_endpoint_url: str | None) -> BlobStore:
    """The store of a ``file:FOLDER`` or ``s3://BUCKET/PREFIX`` URL."""
    # Imported here: boto3 takes half a second and a one-machine service never needs it.
    parts = urlsplit(url)
    if parts.scheme == "file":
        from service.storage.local import LocalStore

        return LocalStore(Path(url.removeprefix("file:")))
    if parts.scheme == "s3" and parts.netloc:
        from service.storage.s3 import S3Store

        return S3Store(parts.netloc, parts.path.strip("/"), s3_endpoint_url)
    raise ValueError(f"blob URL {url!r} is neither file:FOLDER nor s3://BUCKET/PREFIX")
