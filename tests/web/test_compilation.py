from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from .conftest import Fixture

pytestmark = pytest.mark.browser

DONE, RUNNING, FAILED = (f"/compilations/cmp_{name}" for name in ("done", "running", "failed"))


def test_levels_stand_side_by_side(open_page: Callable[..., Page]) -> None:
    matrix = open_page(DONE).get_by_role("region", name="Levels side by side").get_by_role("table")
    for level in (1, 2, 3, 4, 7):
        expect(matrix.get_by_role("columnheader", name=f"Level {level} ")).to_be_visible()
    offloaded = matrix.get_by_role("row", name="Offloaded").first.get_by_role("cell")
    expect(offloaded).to_have_text(["35/47", "37/47", "38/47", "43/47", "45/47"])
    expect(matrix.get_by_role("row", name="Package").first).to_contain_text("2.71 MiB")
    expect(matrix.get_by_text("nnapi.level_too_low").first).to_be_visible()
    expect(matrix.get_by_text("\u22121.6 pp").first).to_be_visible()


def test_every_level_is_shown_compiled_or_not(open_page: Callable[..., Page]) -> None:
    table = (
        open_page(DONE).get_by_role("region", name="What every feature level").get_by_role("table")
    )
    expect(table.get_by_role("row")).to_have_count(9)
    level5 = table.get_by_role("row", name="5 (Android 12)").get_by_role("cell")
    expect(level5).to_have_text(["43/47", "62.5 %", "4", "no"])
    expect(table.get_by_role("row", name="4 (Android 11)")).to_contain_text("yes")


def test_every_latency_of_a_virtual_phone_says_simulated(open_page: Callable[..., Page]) -> None:
    page = open_page(DONE)
    for region in ("Levels side by side", "Runs"):
        table = page.get_by_role("region", name=region).get_by_role("table")
        latencies = table.get_by_role("cell").filter(has_text="p90")
        # 15 runs, of which one failed.
        expect(latencies).to_have_count(14)
        expect(latencies.filter(has_text="simulated")).to_have_count(14)


def test_package_downloads(open_page: Callable[..., Page]) -> None:
    page = open_page(DONE)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the package, level 4, arm64-v8a").click()
    assert download.value.suggested_filename == "art_l4_arm64_v8a.zip"
    assert download.value.path().read_bytes().startswith(b"PK")


def test_operations_tell_where_and_why(open_page: Callable[..., Page]) -> None:
    page = open_page(DONE)
    table = page.get_by_role("region", name="Operations").get_by_role("table")
    swish = table.get_by_role("row").filter(has_text="/features/features.1/depthwise/HardSwish")
    expect(swish.get_by_role("cell")).to_have_count(7)
    expect(swish.get_by_role("cell").nth(1)).to_contain_text("CPU")
    expect(swish.get_by_role("cell").nth(4)).to_contain_text("HARD_SWISH")
    expect(swish).to_contain_text("Level 1\u20133: HARD_SWISH needs NNAPI feature level 4")
    hover = swish.get_by_title("HARD_SWISH needs NNAPI feature level 4; level 1 was asked.")
    expect(hover).to_be_visible()
    folded = table.get_by_role("row").filter(has_text="/stem/BatchNormalization")
    expect(folded.get_by_role("cell").nth(1)).to_contain_text("folded")


def test_operations_are_in_graph_order(open_page: Callable[..., Page]) -> None:
    table = open_page(DONE).get_by_role("region", name="Operations").get_by_role("table")
    names = table.get_by_role("rowheader")
    expect(names).to_have_count(49)
    expect(names.nth(1)).to_contain_text("/stem/Conv")
    expect(names.nth(48)).to_contain_text("/head/Softmax")


def test_operations_are_filtered_and_searched(open_page: Callable[..., Page]) -> None:
    page = open_page(DONE)
    names = page.get_by_role("region", name="Operations").get_by_role("rowheader")
    page.get_by_label("Only what stays on the CPU").check()
    expect(page.get_by_text("12 of 49 operations")).to_be_visible()
    expect(names.filter(has_text="/stem/Conv")).to_have_count(0)
    page.get_by_label("Search operations").fill("einsum")
    expect(names).to_have_count(1)
    expect(names).to_contain_text("/encoder/attention/Einsum")


def test_runs_show_device_notes_and_samples(open_page: Callable[..., Page]) -> None:
    page = open_page(DONE)
    runs = page.get_by_role("region", name="Runs").get_by_role("table").get_by_role("row")
    expect(runs).to_have_count(16)
    lost = runs.filter(has_text="run_2_virtual-level4-x86_64")
    expect(lost).to_contain_text("attempt 3")
    expect(lost).to_contain_text("run.device_lost")
    noisy = runs.filter(has_text="run_3_virtual-level4-x86_64")
    expect(noisy).to_contain_text("not valid")
    expect(noisy).to_contain_text("Too noisy")
    plot = noisy.get_by_role("img", name="Latency samples of run_3_virtual-level4-x86_64: 120")
    canvas = plot.locator("canvas")
    expect(canvas).to_be_visible()
    drawn = canvas.evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0)"
    )
    assert drawn


def test_failure_shows_title_detail_and_code(open_page: Callable[..., Page]) -> None:
    alert = open_page(FAILED).get_by_role("alert")
    expect(alert).to_contain_text("The importer cannot take an operation")
    expect(alert).to_contain_text("NonMaxSuppression")
    expect(alert).to_contain_text("compile.unsupported_operation")


def test_unknown_compilation_is_a_clear_error(open_page: Callable[..., Page]) -> None:
    alert = open_page("/compilations/cmp_none").get_by_role("alert")
    expect(alert).to_contain_text("There is no cmp_none.")
    expect(alert).to_contain_text("request.not_found")


def test_progress_is_live_and_resumes(open_page: Callable[..., Page], farm: Fixture) -> None:
    page = open_page(RUNNING)
    bar = page.get_by_role("progressbar", name="Compilation progress")
    farm.emit("progress", stage="codegen", feature_level=4, done=4, total=10)
    expect(bar).to_have_attribute("aria-valuenow", "4")
    expect(page.get_by_text("codegen · level 4")).to_be_visible()

    farm.cut(refuse=True)
    expect(page.get_by_text("connection lost, trying again")).to_be_visible()
    farm.emit("progress", stage="build", done=8, total=10, abi="arm64-v8a")
    farm.cut()
    expect(page.get_by_text("build · arm64-v8a")).to_be_visible()
    expect(bar).to_have_attribute("aria-valuenow", "8")
    assert farm.seen()["resumed_from"][0] is None
    assert farm.seen()["resumed_from"][-1] == "1"

    farm.emit("status", status="succeeded")
    expect(page.get_by_role("heading", level=1).locator("..")).to_contain_text("succeeded")
    expect(bar).to_have_count(0)
