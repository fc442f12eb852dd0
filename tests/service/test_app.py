from __future__ import annotations

import logging
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import service
from service.openapi import render_document
from service.resources.models import repository as models
from tests.service.farm import Farm, bearer

Serve = Callable[..., Farm]
GOLDEN = Path(__file__).parent / "golden" / "openapi.json"
ROOT = Path(__file__).parents[2]


def check_problem(answer: httpx.Response, status: int, code: str) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["type"] == f"urn:nnfarm:error:{code}"
    return str(body["detail"])


def test_openapi_document_is_the_golden_one() -> None:
    assert render_document() == GOLDEN.read_text(), (
        "the API has changed: python -m service.openapi tests/service/golden/openapi.json"
    )


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert service.__version__ == project["version"]


def test_service_is_alive_and_ready(farm: Farm) -> None:
    assert farm.get("/healthz") == {"status": "ok"}
    assert farm.get("/readyz") == {"status": "ok"}


def test_errors_of_the_framework_are_problems_too(lite_farm: Farm) -> None:
    client = lite_farm.client
    check_problem(client.get("/v1/nothing"), 404, "request.not_found")
    check_problem(client.delete("/v1/models"), 405, "request.method_not_allowed")
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        check_problem(client.request(method, "/v1/nothing"), 404, "request.not_found")
    damaged = client.post(
        "/v1/compilations", content=b"{", headers={"Content-Type": "application/json"}
    )
    check_problem(damaged, 422, "request.invalid")


@pytest.mark.parametrize("path", ["models/%00", "runs?cursor=%00", "compilations/%00/events"])
def test_zero_bytes_are_the_users_mistake(farm: Farm, path: str) -> None:
    answer = farm.client.get(f"/v1/{path}")
    assert answer.json().get("error_class", "user") == "user"
    assert answer.status_code in (200, 404, 422)


def test_unexpected_exception_is_a_bug_with_an_id_in_the_log(
    lite_farm: Farm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the house")

    monkeypatch.setattr(models, "page", fail)
    with caplog.at_level(logging.ERROR):
        answer = lite_farm.client.get("/v1/models")
    check_problem(answer, 500, "bug.internal")
    assert "secret" not in answer.text
    error_id = answer.json()["details"]["error_id"]
    record = next(record for record in caplog.records if error_id in record.getMessage())
    assert record.exc_info is not None


def test_database_that_is_away_is_an_infra_problem(start: Serve, tmp_path: Path) -> None:
    farm = start()
    farm.components.database.close()
    for file in tmp_path.glob("test.db*"):
        file.unlink()
    tmp_path.joinpath("test.db").mkdir()
    check_problem(farm.client.get("/readyz"), 503, "infra.unavailable")
    tmp_path.joinpath("test.db").rmdir()


def test_large_json_is_refused_while_it_comes(start: Serve) -> None:
    farm = start(max_body_bytes=1000)
    body = {"model_id": "x", "levels": [1] * 1000}
    check_problem(farm.client.post("/v1/compilations", json=body), 413, "request.too_large")


def test_user_tokens_are_asked_for_when_set(start: Serve) -> None:
    farm = start(api_tokens="first-token, second-token")
    for path in ("models", "datasets", "compilations", "devices", "runs", "artifacts/x"):
        answer = farm.client.get(f"/v1/{path}")
        check_problem(answer, 401, "request.unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
    check_problem(farm.client.get("/v1/models", headers=bearer("x")), 401, "request.unauthorized")
    assert farm.client.get("/v1/models", headers=bearer("second-token")).is_success
    assert farm.client.get("/healthz").is_success


def test_page_is_served_with_its_own_addresses(start: Serve, tmp_path: Path) -> None:
    farm = start()
    assert "npm run build" in farm.client.get("/").text
    assets = tmp_path / "web" / "assets"
    assets.mkdir(parents=True)
    (tmp_path / "web" / "index.html").write_text("the page")
    (assets / "app-1.js").write_text("code")
    (tmp_path / "secret.txt").write_text("secret")
    for path in ("/", "/compilations/cmp_1", "/devices", "/models", "/upload"):
        assert farm.client.get(path).text == "the page"
    script = farm.client.get("/assets/app-1.js")
    assert script.text == "code"
    assert "immutable" in script.headers["cache-control"]
    for path in ("/assets/none.js", "/v1/none", "/%2e%2e/secret.txt", "/..%2fsecret.txt"):
        check_problem(farm.client.get(path), 404, "request.not_found")


def test_missing_settings_are_named() -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NNFARM_")}
    found = subprocess.run(
        [sys.executable, "-m", "service.app"],
        env=clean,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    for name in ("NNFARM_SECRET_KEY", "NNFARM_WORKER_TOKEN", "NNFARM_AGENT_TOKEN"):
        assert f"{name}: Field required" in found.stderr
