"""Headless Chromium against the built page, over the fixture service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

REPOSITORY = Path(__file__).parents[2]


class Fixture:
    """The fixture service as tests steer it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url)

    def reset(self, **options: Any) -> None:
        self._client.post("/_fixture/reset", params=options).raise_for_status()

    def emit(self, event: str, **data: Any) -> None:
        body = {"event": event, "data": data}
        self._client.post("/_fixture/events", json=body).raise_for_status()

    def cut(self, *, refuse: bool = False) -> None:
        self._client.post("/_fixture/cut", params={"refuse": refuse}).raise_for_status()

    def seen(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.get("/_fixture/seen").json()
        return answer

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="session")
def service() -> Iterator[Fixture]:
    command = [sys.executable, str(Path(__file__).with_name("fixture_service.py"))]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            pytest.fail("The fixture service did not start; its own message is above.")
        fixture = Fixture(line.split()[-1])
        try:
            yield fixture
        finally:
            fixture.close()
            process.terminate()


@pytest.fixture
def farm(service: Fixture) -> Fixture:
    service.reset()
    return service


@pytest.fixture
def open_page(browser: Browser, farm: Fixture) -> Iterator[Callable[..., Page]]:
    """Opens a path of the page; at the end, no script error and no request elsewhere is allowed."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def note_request(url: str) -> None:
        if not url.startswith((farm.url, "blob:", "data:")):
            faults.append(f"request to another host: {url}")

    def opened(path: str, *, width: int = 1440, height: int = 900, scheme: Any = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, base_url=farm.url
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
        page.on("request", lambda request: note_request(request.url))
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
