from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import FilePayload, Page, expect

from service.contracts.nnapi_settings import NnapiSettings

if TYPE_CHECKING:
    from .conftest import Fixture

pytestmark = pytest.mark.browser


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


MODEL = file("digits.onnx", b"\x08\x09" * 50)
DATASET = file("digits.npz", b"PK spectrogram")


def test_model_and_dataset_start_a_compilation(
    open_page: Callable[..., Page], farm: Fixture
) -> None:
    page = open_page("/upload")
    page.get_by_label("Model").set_input_files(MODEL)
    page.get_by_label("Dataset").set_input_files(DATASET)
    page.get_by_label("Level 2 Android 9").check()
    page.get_by_label("Level 7").uncheck()
    page.get_by_label("x86_64", exact=True).check()
    page.get_by_label("avx2").check()
    page.get_by_label("Any one device").check()
    page.get_by_label("Keep on the CPU").fill("Softmax, Erf")
    page.get_by_role("button", name="Compile").click()
    page.wait_for_url("**/compilations/cmp_new")
    expect(page.get_by_role("heading", level=1)).to_have_text("digits")
    [request] = farm.seen()["requests"]
    assert request == {
        "model_id": "mod_digits",
        "levels": [1, 2, 4],
        "abis": ["arm64-v8a", "x86_64"],
        "dataset_id": "dat_1",
        "options": {
            "exclude_ops": ["Softmax", "Erf"],
            "exclude_nodes": [],
            "only_nodes": [],
            "accelerators": ["nnapi"],
            "min_subgraph_ops": 1,
            "cpu_variants": ["avx2"],
            "precision": "float32",
            "nnapi": dict.fromkeys(NnapiSettings.model_fields),
            "input_shapes": {},
        },
        "run_on": "any",
    }


def test_missing_choices_are_told_before_anything_is_sent(
    open_page: Callable[..., Page], farm: Fixture
) -> None:
    page = open_page("/upload")
    page.get_by_label("arm64-v8a").uncheck()
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_text("Choose a model file.")).to_be_visible()
    expect(page.get_by_text("Choose one ABI at least.")).to_be_visible()
    assert farm.seen()["requests"] == []


def test_a_refused_model_is_told_at_its_field(open_page: Callable[..., Page]) -> None:
    page = open_page("/upload")
    page.get_by_label("Model").set_input_files(file("notes.txt", b"hello"))
    page.get_by_role("button", name="Compile").click()
    field = page.get_by_label("Model").locator("..")
    expect(field.get_by_role("alert")).to_contain_text("notes.txt is not an ONNX protobuf.")
    expect(field.get_by_role("alert")).to_contain_text("model.unreadable")


def test_a_refused_dataset_is_told_at_its_field_and_can_be_mended(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("/upload")
    page.get_by_label("Model").set_input_files(MODEL)
    page.get_by_label("Dataset").set_input_files(file("other.npz", b"PK image"))
    page.get_by_role("button", name="Compile").click()
    field = page.get_by_label("Dataset").locator("..")
    expect(field.get_by_role("alert")).to_contain_text("no array named spectrogram")
    page.get_by_label("Dataset").set_input_files(DATASET)
    page.get_by_role("button", name="Compile").click()
    page.wait_for_url("**/compilations/cmp_new")


def test_a_refused_option_is_told_at_its_field(open_page: Callable[..., Page]) -> None:
    page = open_page("/upload")
    page.get_by_label("Model").set_input_files(MODEL)
    page.get_by_label("Keep on the CPU").fill("Nothing")
    page.get_by_role("button", name="Compile").click()
    field = page.get_by_label("Keep on the CPU").locator("..")
    expect(field.get_by_role("alert")).to_contain_text("compile.bad_option")
