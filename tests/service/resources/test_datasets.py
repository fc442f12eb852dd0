from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from service.contracts.errors import NnfarmError
from service.resources.datasets.npz import check_dataset
from tests.service.farm import SIGNATURE, Farm

Arrays = dict[str, np.ndarray]
LIMIT = 1 << 20


def packed(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def images(count: int = 3, *shape: int) -> np.ndarray:
    return np.zeros((count, *(shape or (1, 1, 8, 8))), np.float32)


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def short_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, images())
    return zipped(image=buffer.getvalue()[:-4])


CASES: list[tuple[str, Callable[[], bytes], str, str]] = [
    ("empty file", lambda: b"", "dataset.empty", "0 bytes"),
    ("no arrays", zipped, "dataset.empty", "no arrays"),
    ("no samples", lambda: packed(image=images(0)), "dataset.empty", "no samples"),
    ("text", lambda: b"no zip", "dataset.unreadable", "damaged"),
    ("truncated", lambda: packed(image=images())[:-30], "dataset.unreadable", "damaged"),
    ("no array inside", lambda: zipped(image=b"text"), "dataset.unreadable", "no .npy"),
    ("short array", short_array, "dataset.unreadable", "shorter"),
    (
        "python objects",
        lambda: packed(image=np.array([{}], dtype=object)),
        "dataset.unreadable",
        "never loaded",
    ),
    (
        "unpacks too large",
        lambda: packed(image=np.zeros((5000, 64), np.float32)),
        "dataset.too_large",
        "unpacks",
    ),
    ("missing input", lambda: packed(labels=np.arange(3)), "dataset.mismatch", "'image'"),
    (
        "unknown input",
        lambda: packed(image=images(), other=images()),
        "dataset.mismatch",
        "no input 'other'",
    ),
    ("type", lambda: packed(image=images().astype(np.float64)), "dataset.mismatch", "float64"),
    ("shape", lambda: packed(image=images(3, 1, 8, 9)), "dataset.mismatch", "[3, 1, 8, 9]"),
    (
        "sample counts",
        lambda: packed(image=images(3), labels=np.arange(2)),
        "dataset.mismatch",
        "different numbers",
    ),
    (
        "labels of floats",
        lambda: packed(image=images(3), labels=np.zeros(3)),
        "dataset.mismatch",
        "integers",
    ),
    (
        "labels of two dimensions",
        lambda: packed(image=images(3), labels=np.zeros((3, 1), int)),
        "dataset.mismatch",
        "1-D",
    ),
    ("nan", lambda: packed(image=images() * np.nan), "dataset.not_finite", "NaN"),
    ("infinity", lambda: packed(image=images() + np.inf), "dataset.not_finite", "infinite"),
]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(
    ("content", "code", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_bad_dataset_is_refused_with_its_reason(
    tmp_path: Path, content: Callable[[], bytes], code: str, words: str
) -> None:
    file = tmp_path / "data.npz"
    file.write_bytes(content())
    with pytest.raises(NnfarmError) as caught:
        check_dataset(file, SIGNATURE, LIMIT)
    assert caught.value.code == code
    assert words in caught.value.detail


@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (1, 8, 8)])
def test_leading_batch_dimension_of_one_may_be_left_out(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    file = tmp_path / "data.npz"
    file.write_bytes(packed(image=images(5, *shape)))
    facts = check_dataset(file, SIGNATURE, LIMIT)
    assert (facts.sample_count, facts.has_labels) == (5, False)


def upload(farm: Farm, content: bytes, model_id: str) -> httpx.Response:
    files = {"file": ("data.npz", content)}
    return farm.client.post("/v1/datasets", files=files, data={"model_id": model_id})


def test_dataset_is_kept_once_and_reaches_the_worker(farm: Farm) -> None:
    model_id = farm.seed_model()
    content = packed(image=images(3), labels=np.array([1, 2, 3]))
    answer = upload(farm, content, model_id)
    assert answer.status_code == 201, answer.text
    dataset = answer.json()
    assert (dataset["sample_count"], dataset["has_labels"]) == (3, True)
    assert upload(farm, content, model_id).status_code == 200
    assert farm.get(f"/v1/datasets/{dataset['id']}") == dataset
    assert farm.get("/v1/datasets")["items"] == [dataset]
    spec = farm.claim(farm.compile(dataset_id=dataset["id"])["id"])
    assert spec["dataset_sha256"] == dataset["sha256"]


def test_dataset_of_another_model_is_refused(lite_farm: Farm) -> None:
    content = packed(image=images(3))
    dataset = upload(lite_farm, content, lite_farm.seed_model()).json()
    body = {
        "model_id": lite_farm.seed_model(b"another model"),
        "levels": [1],
        "dataset_id": dataset["id"],
    }
    answer = lite_farm.client.post("/v1/compilations", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "dataset.mismatch")


def test_dataset_needs_a_known_model(lite_farm: Farm) -> None:
    assert upload(lite_farm, packed(image=images()), "mod_none").status_code == 404
    answer = upload(lite_farm, packed(image=images()), "")
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
