from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.service.farm import Farm

Serve = Callable[..., Farm]
DIST = Path(__file__).parents[2] / "web" / "dist"


@pytest.fixture
def documented(start: Serve) -> Farm:
    """A service with the real build of the page."""
    if not DIST.joinpath("swagger-ui").is_dir():
        pytest.fail("the page is not built: run `make web`", pytrace=False)
    return start(web_dir=DIST)


def test_viewer_is_all_of_this_host(documented: Farm) -> None:
    page = documented.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "//" not in re.sub(r"// .*|<!--.*?-->", "", page.text)  # not in any address
    files = re.findall(r'(?:href|src)="([^"]+)"', page.text)
    kinds = {file: documented.client.get(file).headers["content-type"] for file in files}
    assert {file.rpartition(".")[2]: kind.partition(";")[0] for file, kind in kinds.items()} == {
        "css": "text/css",
        "js": "text/javascript",
        "png": "image/png",
    }


def test_viewer_that_is_not_built_says_so(lite_farm: Farm) -> None:
    page = lite_farm.client.get("/docs")
    assert page.status_code == 200
    assert "make web" in page.text
    assert 'href="/openapi.json"' in page.text
    assert "/v1/models" in lite_farm.get("/openapi.json")["paths"]


def test_viewers_of_other_hosts_are_gone(lite_farm: Farm) -> None:
    assert lite_farm.client.get("/redoc").status_code == 404


@pytest.mark.browser
def test_viewer_shows_the_operations_without_a_request_elsewhere(
    documented: Farm, browser: Browser
) -> None:
    home = str(documented.client.base_url)
    requests: list[str] = []
    faults: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{home}/docs")
    operations = page.locator(".opblock")
    expect(operations.filter(has_text="/v1/compilations").first).to_be_visible()
    documented_count = sum(map(len, documented.get("/openapi.json")["paths"].values()))
    expect(operations).to_have_count(documented_count)
    # Opened, so that what an operation loads is seen as well.
    operations.filter(has_text="/v1/runs").first.click()
    expect(page.get_by_text("Parameters").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.close()
    assert faults == []
    assert f"{home}/openapi.json" in requests
    assert [url for url in requests if not url.startswith((f"{home}/", "data:", "blob:"))] == []
