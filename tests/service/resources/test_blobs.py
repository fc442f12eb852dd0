from __future__ import annotations

import hashlib

import pytest

from tests.service.farm import Farm, bearer

CONTENT = b"some bytes"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = f"/internal/v1/blobs/{SHA256}"


@pytest.fixture(scope="module")
def headers(lite_farm: Farm) -> dict[str, str]:
    return bearer(lite_farm.claim(lite_farm.compile()["id"])["job_token"])


def test_blob_is_checked_stored_and_given_back(lite_farm: Farm, headers: dict[str, str]) -> None:
    client = lite_farm.client
    assert client.head(PATH, headers=headers).status_code == 404
    wrong = client.put(PATH, content=b"other bytes", headers=headers)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "request.hash_mismatch")
    for _ in range(2):
        assert client.put(PATH, content=CONTENT, headers=headers).status_code == 204
    head = client.head(PATH, headers=headers)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(CONTENT)))
    assert client.get(PATH, headers=headers).content == CONTENT


def test_blobs_are_closed_without_a_job_or_lease(lite_farm: Farm) -> None:
    assert lite_farm.client.get(PATH).status_code == 401
    assert lite_farm.client.get(PATH, headers=bearer("guess")).status_code == 401
    assert lite_farm.client.put(PATH, content=CONTENT).status_code == 401


@pytest.mark.parametrize("name", ["abc", "A" * 64, "..%5c..%5cetc", "g" * 64])
def test_names_that_are_no_hash_are_refused(
    lite_farm: Farm, headers: dict[str, str], name: str
) -> None:
    answer = lite_farm.client.put(f"/internal/v1/blobs/{name}", content=b"", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
