from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from .conftest import Fixture

pytestmark = pytest.mark.browser


def test_compilations_and_devices_are_listed(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    compilations = page.get_by_role("region", name="Compilations").get_by_role("row")
    expect(compilations.filter(has_text="mobilenet-v2")).to_contain_text("partition · 2/10")
    expect(compilations.filter(has_text="keyword-spotter")).to_contain_text("14/15 succeeded")
    expect(compilations.filter(has_text="keyword-spotter")).to_contain_text("1\u20134, 7")
    failed = compilations.filter(has_text="detector-with-nms")
    expect(failed).to_contain_text("The importer cannot take an operation")
    phone = page.get_by_role("row").filter(has_text="virtual-level7-arm64")
    for text in ("online", "virtual", "arm64-v8a", "sim-npu", "API 33"):
        expect(phone).to_contain_text(text)
    expect(page.get_by_role("row").filter(has_text="golden run")).to_contain_text("quarantined")


def test_list_follows_a_running_compilation(open_page: Callable[..., Page], farm: Fixture) -> None:
    page = open_page("/")
    bar = page.get_by_role("progressbar", name="Progress of mobilenet-v2")
    expect(bar).to_have_attribute("aria-valuenow", "2")
    farm.emit("progress", stage="build", done=7, total=10)
    expect(bar).to_have_attribute("aria-valuenow", "7")


def test_a_model_opens_its_compilation(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    page.get_by_role("link", name="keyword-spotter").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("keyword-spotter")
    page.go_back()
    expect(page.get_by_role("link", name="keyword-spotter")).to_be_visible()


def test_empty_farm_says_what_to_do(open_page: Callable[..., Page], farm: Fixture) -> None:
    farm.reset(empty=True)
    page = open_page("/")
    expect(page.get_by_text("nnfarm compile model.onnx")).to_be_visible()
    expect(page.get_by_text("No phone is attached")).to_be_visible()
    page.get_by_role("link", name="Upload a model").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("New compilation")


def test_a_farm_with_tokens_asks_for_one(open_page: Callable[..., Page], farm: Fixture) -> None:
    farm.reset(token="s3cret")
    page = open_page("/compilations/cmp_done")
    expect(page.get_by_role("alert")).to_contain_text("request.unauthorized")
    page.get_by_label("API token").fill("s3cret")
    page.get_by_role("button", name="Use for this tab").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("keyword-spotter")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the package, level 1, x86_64").click()
    assert download.value.path().read_bytes().startswith(b"PK")


def test_unknown_page_leads_back(open_page: Callable[..., Page]) -> None:
    page = open_page("/nowhere")
    expect(page.get_by_text("There is no such page")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="devices").click()
    expect(page.get_by_role("rowheader", name="virtual-level4-x86_64")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path", ["/", "/compilations/cmp_done", "/compilations/cmp_failed", "/devices", "/upload"]
)
def test_nothing_is_wider_than_a_phone(
    open_page: Callable[..., Page], path: str, scheme: str
) -> None:
    page = open_page(path, width=390, height=844, scheme=scheme)
    expect(page.get_by_role("heading", level=1)).to_be_attached()
    expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_keyboard_reaches_the_content_first(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    expect(page.get_by_role("main")).to_be_visible()  # before, there is nothing to reach
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
