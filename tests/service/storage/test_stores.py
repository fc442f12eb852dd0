from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from service.contracts.errors import NnfarmError
from service.storage.incoming import Incoming, StagedBlob
from service.storage.store import BlobStore, open_store

LARGE = bytes(range(256)) * 20_000  # several pieces of a stream
BUCKET = "nnfarm-test"


def too_large(limit_bytes: int) -> NnfarmError:
    return NnfarmError("request.too_large", f"more than {limit_bytes}")


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["file", "s3"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> BlobStore:
    if request.param == "file":
        return open_store(f"file:{tmp_path}", None)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    url = request.getfixturevalue("s3_url")
    boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
    return open_store(f"s3://{BUCKET}/some/prefix", url)


def put(store: BlobStore, content: bytes) -> str:
    with Incoming(store.staging_dir, 1 << 30, too_large) as incoming:
        incoming.write(content)
        staged = incoming.finish()
        store.put(staged)
    return staged.sha256


def test_blob_comes_back_as_it_went_in(store: BlobStore) -> None:
    sha256 = put(store, LARGE)
    assert sha256 == hashlib.sha256(LARGE).hexdigest()
    assert store.size(sha256) == len(LARGE)
    pieces = list(store.read(sha256))
    assert b"".join(pieces) == LARGE
    assert len(pieces) > 1


def test_same_blob_twice_is_fine(store: BlobStore) -> None:
    assert put(store, b"twice") == put(store, b"twice")
    assert b"".join(store.read(hashlib.sha256(b"twice").hexdigest())) == b"twice"


def test_empty_blob_is_a_blob(store: BlobStore) -> None:
    sha256 = put(store, b"")
    assert store.size(sha256) == 0
    assert b"".join(store.read(sha256)) == b""


def test_missing_blob_is_noticed_before_the_first_byte(store: BlobStore) -> None:
    assert store.size("0" * 64) is None
    with pytest.raises(NnfarmError) as caught:
        store.read("0" * 64)
    assert caught.value.code == "request.not_found"


def test_store_that_fails_says_so(store: BlobStore, tmp_path: Path) -> None:
    lost = StagedBlob(tmp_path / "gone", "1" * 64, 0, 0)
    with pytest.raises((NnfarmError, FileNotFoundError)):
        store.put(lost)


def test_bucket_that_is_missing_is_not_a_missing_blob(s3_url: str) -> None:
    store = open_store("s3://no-such-bucket", s3_url)
    with pytest.raises(NnfarmError) as caught:
        store.read("0" * 64)
    assert caught.value.code == "infra.storage"


@pytest.mark.parametrize("url", ["ftp://host/path", "s3://", "var/blobs"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        open_store(url, None)


def test_incoming_counts_hashes_and_cleans_up(tmp_path: Path) -> None:
    with Incoming(tmp_path, 10, too_large) as incoming:
        incoming.write(b"12345")
        staged = incoming.finish(hashlib.sha256(b"12345").hexdigest().upper())
        assert (staged.size_bytes, staged.crc32) == (5, zlib.crc32(b"12345"))
        assert staged.path.read_bytes() == b"12345"
    assert list(tmp_path.iterdir()) == []


def test_incoming_stops_at_its_limit(tmp_path: Path) -> None:
    with Incoming(tmp_path, 10, too_large) as incoming:
        incoming.write(b"1234567890")
        with pytest.raises(NnfarmError, match="more than 10"):
            incoming.write(b"1")
