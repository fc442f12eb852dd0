from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_farm.resources.part_cache import PartCache
from service.contracts.errors import NnfarmError


class Source:
    """Gives blobs and counts how often it was asked."""

    def __init__(self, *blobs: bytes) -> None:
        self.blobs = {hashlib.sha256(blob).hexdigest(): blob for blob in blobs}
        self.asked: list[str] = []

    def __call__(self, sha256: str) -> Iterator[bytes]:
        self.asked.append(sha256)
        blob = self.blobs[sha256]
        return iter((blob[:3], blob[3:]))


def test_a_blob_is_downloaded_once(tmp_path: Path) -> None:
    source = Source(b"some bytes")
    (sha,) = source.blobs
    for cache in (PartCache(tmp_path), PartCache(tmp_path)):
        assert cache.fetch(sha, source).read_bytes() == b"some bytes"
    assert source.asked == [sha]


def test_wrong_bytes_leave_nothing(tmp_path: Path) -> None:
    source = Source(b"some bytes")
    (sha,) = source.blobs
    source.blobs[sha] = b"other"
    with pytest.raises(NnfarmError, match="other bytes") as caught:
        PartCache(tmp_path).fetch(sha, source)
    assert caught.value.code == "infra.storage"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_download_leaves_nothing(tmp_path: Path) -> None:
    def broken(_: str) -> Iterator[bytes]:
        yield b"half"
        raise NnfarmError("infra.unavailable", "gone")

    with pytest.raises(NnfarmError, match="gone"):
        PartCache(tmp_path).fetch("0" * 64, broken)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_what_is_no_hash_is_refused(tmp_path: Path, name: str) -> None:
    source = Source()
    with pytest.raises(NnfarmError, match="no SHA-256"):
        PartCache(tmp_path).fetch(name, source)
    assert source.asked == []


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    source = Source(b"a" * 40, b"b" * 40, b"c" * 40)
    first, second, third = source.blobs
    cache = PartCache(tmp_path, max_bytes=100)
    for age, sha in ((300, first), (200, second)):
        path = cache.fetch(sha, source)
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    cache.fetch(first, source)  # used again: now the second is the oldest
    cache.fetch(third, source)
    assert {path.name for path in tmp_path.iterdir()} == {first, third}
