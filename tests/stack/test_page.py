"""The page over the running stack, in headless Chromium, with what really came out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from service.client import Client
from service.client.transfer import check_package
from service.local.stack import Stack
from tests.stack.test_end_to_end import finish, request_digits


@pytest.fixture
def page(stack: Stack, browser: Browser) -> Iterator[Page]:
    """A tab at the stack's address; no script error is allowed."""
    faults: list[str] = []
    tab = browser.new_page(base_url=stack.url, viewport={"width": 1440, "height": 1000})
    tab.on("pageerror", lambda error: faults.append(str(error)))
    yield tab
    tab.close()
    assert faults == []


@pytest.mark.browser
def test_a_finished_compilation_shows_levels_reasons_results_and_downloads(
    client: Client, page: Page, tmp_path: Path
) -> None:
    compilation = request_digits(client, exclude_ops=("MaxPool",))
    results = finish(client, compilation)

    page.goto("/")
    page.get_by_role("link", name="digits").first.click()
    expect(page.get_by_role("heading", name="Operations")).to_be_visible()
    page.goto(f"/compilations/{compilation.id}")
    expect(page.get_by_text("98.5 % → 98.5 %")).to_have_count(len(results))
    expect(page.get_by_text("simulated").first).to_be_visible()
    expect(page.get_by_text("MaxPool was excluded by option.").first).to_be_visible()

    with page.expect_download() as download:
        page.get_by_role("link", name="Download").or_(
            page.get_by_role("button", name="Download")
        ).first.click()
    saved = tmp_path / "package.zip"
    download.value.save_as(saved)
    manifest = check_package(saved)
    assert manifest in [result.artifact.manifest for result in results]


@pytest.mark.browser
def test_devices_are_listed_as_virtual_phones(page: Page) -> None:
    page.goto("/devices")
    expect(page.get_by_text("virtual-level4-x86_64").first).to_be_visible()
    expect(page.get_by_text("virtual", exact=True).first).to_be_visible()
