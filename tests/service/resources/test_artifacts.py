from __future__ import annotations

import io
import json
import struct
import zipfile

import httpx
import pytest

from tests.service.farm import Farm


@pytest.fixture(scope="module")
def artifact_id(lite_farm: Farm) -> str:
    artifacts = lite_farm.build()["artifacts"]
    found: str = artifacts[1]["id"]
    return found


@pytest.fixture(scope="module")
def package(lite_farm: Farm, artifact_id: str) -> httpx.Response:
    answer = lite_farm.client.get(f"/v1/artifacts/{artifact_id}/package")
    assert answer.status_code == 200
    return answer


def test_package_is_a_sound_zip_of_stored_members(package: httpx.Response) -> None:
    with zipfile.ZipFile(io.BytesIO(package.content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "model.so", "weights.bin", "report.json"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("weights.bin") == b"w" * 4097
        manifest = json.loads(archive.read("manifest.json"))
    assert (manifest["feature_level"], manifest["abi"]) == (4, "x86_64")


def test_every_member_starts_at_its_alignment(package: httpx.Response) -> None:
    with zipfile.ZipFile(io.BytesIO(package.content)) as archive:
        for info in archive.infolist():
            fields = struct.unpack_from("<4s5H3I2H", package.content, info.header_offset)
            data_offset = info.header_offset + 30 + fields[-2] + fields[-1]
            alignment = 16384 if info.filename.endswith(".so") else 4096
            assert data_offset % alignment == 0, info.filename


def test_length_is_known_and_bytes_are_the_same_each_time(
    lite_farm: Farm, artifact_id: str, package: httpx.Response
) -> None:
    size_bytes = lite_farm.get(f"/v1/artifacts/{artifact_id}")["size_bytes"]
    assert int(package.headers["content-length"]) == len(package.content) == size_bytes
    assert package.headers["content-disposition"].endswith('-level4-x86_64.zip"')
    again = lite_farm.client.get(f"/v1/artifacts/{artifact_id}/package")
    assert again.content == package.content
    assert again.headers["etag"] == package.headers["etag"]


def test_known_etag_is_not_sent_again(
    lite_farm: Farm, artifact_id: str, package: httpx.Response
) -> None:
    headers = {"If-None-Match": package.headers["etag"]}
    answer = lite_farm.client.get(f"/v1/artifacts/{artifact_id}/package", headers=headers)
    assert (answer.status_code, answer.content) == (304, b"")


def test_parts_and_report_are_there_by_themselves(lite_farm: Farm, artifact_id: str) -> None:
    part = lite_farm.client.get(f"/v1/artifacts/{artifact_id}/parts/weights.bin")
    assert part.content == b"w" * 4097
    assert lite_farm.get(f"/v1/artifacts/{artifact_id}/report")["offloaded_count"] == 2


@pytest.mark.parametrize("path", ["", "/package", "/report", "/parts/model.so"])
def test_unknown_artifact_is_a_problem(lite_farm: Farm, path: str) -> None:
    answer = lite_farm.client.get(f"/v1/artifacts/art_none{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")


def test_unknown_part_is_a_problem(lite_farm: Farm, artifact_id: str) -> None:
    answer = lite_farm.client.get(f"/v1/artifacts/{artifact_id}/parts/other.bin")
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")
