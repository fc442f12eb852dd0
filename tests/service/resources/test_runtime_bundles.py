"""Runtime bundles: uploaded by the farm, checked, downloaded by anyone who may."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.client.command import run
from tests.service.conftest import Serve
from tests.service.farm import AGENT_TOKEN, WORKER_TOKEN, Farm, bearer

TARGET = "android-arm64-v8a"
FILES = {"nnfarm_runner": b"\x7fELF runner", "libtvm_ffi.so": b"\x7fELF library"}


def description(files: dict[str, bytes], **changes: Any) -> bytes:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    versions = {"apache-tvm": "0.27.0", "nnfarm_runner": "0.1.0"}
    content = {"format": "nnfarm.runtime", "target": TARGET, "versions": versions}
    return json.dumps({**content, "sha256": digests, **changes}).encode()


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def bundle(files: dict[str, bytes] = FILES, **changes: Any) -> bytes:
    return zipped({"bundle.json": description(files, **changes), **files})


def upload(farm: Farm, content: bytes, token: str = AGENT_TOKEN) -> httpx.Response:
    return farm.client.post("/internal/v1/runtime-bundles", content=content, headers=bearer(token))


def test_upload_list_download(farm: Farm) -> None:
    content = bundle()
    made = upload(farm, content)
    assert made.status_code == 201, made.text
    sha256 = hashlib.sha256(content).hexdigest()
    assert made.json()["sha256"] == sha256
    assert upload(farm, content).status_code == 200
    assert farm.client.get("/v1/runtime-bundles").json()["items"] == [made.json()]
    assert farm.client.get(f"/v1/runtime-bundles/{TARGET}").json() == made.json()
    path = f"/v1/runtime-bundles/{TARGET}/content"
    answer = farm.client.get(path)
    assert answer.content == content
    assert answer.headers["ETag"] == f'"{sha256}"'
    assert answer.headers["Content-Length"] == str(len(content))
    again = farm.client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_newest_of_a_target_counts(lite_farm: Farm) -> None:
    newer = bundle({**FILES, "nnfarm_runner": b"another"})
    other = bundle(target="linux-x86_64")
    assert [upload(lite_farm, content).status_code for content in (bundle(), newer, other)] == [
        *(201, 201, 201)
    ]
    assert lite_farm.client.get(f"/v1/runtime-bundles/{TARGET}/content").content == newer
    items = lite_farm.client.get("/v1/runtime-bundles").json()["items"]
    assert [item["target"] for item in items] == ["linux-x86_64", TARGET, TARGET]


def test_only_agents_upload(lite_farm: Farm) -> None:
    assert upload(lite_farm, bundle(), WORKER_TOKEN).status_code == 401
    assert lite_farm.client.post("/internal/v1/runtime-bundles", content=b"").status_code == 401


def test_users_and_agents_download_where_tokens_are_set(start: Serve) -> None:
    farm = start(api_tokens=("a-token-of-users",))
    path = f"/v1/runtime-bundles/{TARGET}/content"
    assert upload(farm, bundle()).status_code == 201
    assert upload(farm, bundle(), "a-token-of-users").status_code == 401
    for token in (AGENT_TOKEN, "a-token-of-users"):
        assert farm.client.get(path, headers=bearer(token)).status_code == 200
    assert farm.client.get(path).status_code == 401
    assert farm.client.get(path, headers=bearer(WORKER_TOKEN)).status_code == 401


def test_a_target_without_a_bundle(lite_farm: Farm) -> None:
    answer = lite_farm.client.get("/v1/runtime-bundles/commodore-64/content")
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")


GOOD = description(FILES)
BAD: list[tuple[str, bytes, str]] = [
    ("no zip", b"text", "no zip"),
    ("cut", bundle()[:-30], "no zip"),
    ("damaged", bundle().replace(b"ELF runner", b"ELF rumner"), "CRC"),
    ("compressed", zipped({"bundle.json": GOOD, **FILES}, zipfile.ZIP_DEFLATED), "stored"),
    ("no description", zipped(FILES), "no bundle.json"),
    ("no JSON", zipped({"bundle.json": b"{", **FILES}), "bundle.json"),
    ("another format", bundle(format="something"), "format"),
    ("a path as target", bundle(target="../x"), "target"),
    ("a path as file", bundle({"../evil.so": b"x"}), "sha256"),
    ("a file too few", zipped({"bundle.json": GOOD}), "members"),
    ("a file too many", zipped({"bundle.json": GOOD, **FILES, "more": b""}), "members"),
    ("other bytes", zipped({"bundle.json": GOOD, **FILES, "libtvm_ffi.so": b"x"}), "is not the"),
]


@pytest.mark.parametrize(("content", "words"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_bad_bundles_are_refused(lite_farm: Farm, content: bytes, words: str) -> None:
    answer = upload(lite_farm, content)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    assert words in answer.json()["detail"]


def test_the_sender_s_hash_is_checked(lite_farm: Farm) -> None:
    headers = {**bearer(AGENT_TOKEN), "X-Content-SHA256": "0" * 64}
    answer = lite_farm.client.post(
        "/internal/v1/runtime-bundles", content=bundle(), headers=headers
    )
    assert answer.json()["code"] == "request.hash_mismatch"


def nnfarm(farm: Farm, *arguments: str | Path) -> int:
    words = ["--url", str(farm.client.base_url), "--json", "runtime", *map(str, arguments)]
    return int(run(words))


def test_the_command_uploads_lists_and_downloads(
    lite_farm: Farm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, saved = tmp_path / "bundle", tmp_path / "saved.zip"
    folder.mkdir()
    files = {**FILES, "nnfarm_runner": b"by the command"}
    for name, content in {"bundle.json": description(files, target="mine"), **files}.items():
        (folder / name).write_bytes(content)
    assert nnfarm(lite_farm, "upload", folder, "--agent-token", AGENT_TOKEN) == 0
    made = json.loads(capsys.readouterr().out)
    assert nnfarm(lite_farm, "list") == 0
    listed = json.loads(capsys.readouterr().out)["items"]
    assert [item["sha256"] for item in listed if item["target"] == "mine"] == [made["sha256"]]
    assert len({item["target"] for item in listed}) == len(listed)
    assert nnfarm(lite_farm, "download", "mine", "-o", saved) == 0
    assert hashlib.sha256(saved.read_bytes()).hexdigest() == made["sha256"]
    with zipfile.ZipFile(saved) as archive:
        assert archive.read("nnfarm_runner") == b"by the command"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("upload", ".", "--agent-token", AGENT_TOKEN), "bundle.json: No such file"),
        (("download", "absent"), "no runtime bundle for 'absent'"),
    ],
)
def test_the_command_says_what_is_wrong(
    lite_farm: Farm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert nnfarm(lite_farm, *arguments) != 0
    assert words in capsys.readouterr().err
