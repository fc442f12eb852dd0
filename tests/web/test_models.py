from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from .conftest import Fixture

pytestmark = pytest.mark.browser


def test_quantized_models_name_their_origin_and_their_loss(open_page: Callable[..., Page]) -> None:
    page = open_page("/")
    page.get_by_role("link", name="Models", exact=True).click()
    rows = page.get_by_role("region", name="Models").get_by_role("row")
    made = rows.filter(has=page.get_by_text("keyword-spotter-int8", exact=True))
    for text in ("324 KiB", "keyword-spotter", "int8", "1.6 % of top-1"):
        expect(made).to_contain_text(text)


def test_quantizations_show_their_state_and_progress(open_page: Callable[..., Page]) -> None:
    page = open_page("/models")
    rows = page.get_by_role("region", name="Quantizations").get_by_role("row")
    done = rows.filter(has_text="succeeded")
    for text in ("minmax, int8, per channel, 1 excluded", "95.3 % → 93.7 %", "0.47"):
        expect(done).to_contain_text(text)
    expect(rows.filter(has_text="running")).to_contain_text("calibrate · 13/67")
    bar = rows.get_by_role("progressbar", name="Progress of keyword-spotter")
    expect(bar).to_have_attribute("aria-valuenow", "13")


def test_empty_farm_has_no_quantizations(open_page: Callable[..., Page], farm: Fixture) -> None:
    farm.reset(empty=True)
    page = open_page("/models")
    expect(page.get_by_text("Nothing was uploaded yet")).to_be_visible()
    expect(page.get_by_role("region", name="Quantizations")).to_have_count(0)


def test_tunings_show_their_gain_and_progress(open_page: Callable[..., Page]) -> None:
    page = open_page("/models")
    rows = page.get_by_role("region", name="Tunings").get_by_role("row")
    done = rows.filter(has_text="succeeded")
    for text in ("x86_64", "1 of 2", "13 % in conv2d_relu", "20.64 ± 0.87 → 19.83 ± 0.46 ms"):
        expect(done).to_contain_text(text)
    running = rows.filter(has_text="running")
    expect(running).to_contain_text("tune · 4/12")
    expect(running).to_contain_text("virtual-level4 (simulated)")
    bar = running.get_by_role("progressbar", name="Progress of keyword-spotter")
    expect(bar).to_have_attribute("aria-valuenow", "4")
