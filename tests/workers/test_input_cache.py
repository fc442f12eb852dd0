import hashlib
from pathlib import Path

import pytest

from service.contracts.errors import NnfarmError
from workers.input_cache import InputCache

CONTENT = b"a model"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Source:
    def __init__(self) -> None:
        self.downloads = 0

    def __call__(self, sha256: str, path: Path) -> None:
        assert sha256 == SHA256
        self.downloads += 1
        path.write_bytes(CONTENT)


def test_second_use_needs_no_download(tmp_path: Path) -> None:
    cache, source = InputCache(tmp_path / "cache"), Source()
    for name in ("first", "second"):
        cache.copy(SHA256, tmp_path / name, source)
        assert (tmp_path / name).read_bytes() == CONTENT
    assert source.downloads == 1


def test_a_job_cannot_harm_the_next_one(tmp_path: Path) -> None:
    cache, source = InputCache(tmp_path / "cache"), Source()
    cache.copy(SHA256, tmp_path / "first", source)
    (tmp_path / "first").write_bytes(b"changed by the job")
    (tmp_path / "cache" / SHA256).write_bytes(b"changed by a hostile job")
    cache.copy(SHA256, tmp_path / "second", source)
    assert (tmp_path / "second").read_bytes() == CONTENT


def test_link_in_the_cache_is_not_followed(tmp_path: Path) -> None:
    cache, source = InputCache(tmp_path / "cache"), Source()
    (tmp_path / "cache").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "cache" / SHA256).symlink_to(tmp_path / "secret")
    cache.copy(SHA256, tmp_path / "copy", source)
    assert not (tmp_path / "copy").is_symlink()
    assert (tmp_path / "copy").read_bytes() == CONTENT


def test_failed_download_leaves_nothing(tmp_path: Path) -> None:
    def fail(sha256: str, path: Path) -> None:
        path.write_bytes(b"half")
        raise NnfarmError("infra.storage", f"{sha256} broke off")

    with pytest.raises(NnfarmError, match="broke off"):
        InputCache(tmp_path / "cache").copy(SHA256, tmp_path / "copy", fail)
    assert list((tmp_path / "cache").iterdir()) == []
    assert not (tmp_path / "copy").exists()
