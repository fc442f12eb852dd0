"""The one place where errors become HTTP answers: application/problem+json."""

from __future__ import annotations

import logging
import secrets
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException

from service.contracts.errors import NnfarmError, Problem

MEDIA_TYPE = "application/problem+json"

_CODE_BY_STATUS = {
    401: "request.unauthorized",
    403: "request.forbidden",
    404: "request.not_found",
    405: "request.method_not_allowed",
    413: "request.too_large",
}
"""For errors the framework raises itself; any other client error is ``request.invalid``."""

_CODE_OF_BAD_OPTIONS = {
    "/v1/compilations": "compile.bad_option",
    "/v1/quantizations": "quantize.bad_option",
    "/v1/tunings": "tune.bad_option",
}
"""Requests whose `options` have a code of their own for mistakes, by path."""

_log = logging.getLogger(__name__)

PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "The request cannot be done; `code` says why",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
    "5XX": {
        "description": "The service failed; errors of class `infra` are worth another try",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
}
"""What every route declares in the OpenAPI document."""


def install(app: FastAPI) -> None:
    """Answer every error of this application with a problem body."""
    app.add_exception_handler(NnfarmError, _on_our_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_framework_error)
    app.add_exception_handler(OperationalError, _on_database_error)
    app.add_exception_handler(DataError, _on_unstorable_value)
    app.add_exception_handler(Exception, _on_bug)


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """A problem as an answer."""
    return JSONResponse(
        problem.model_dump(mode="json"),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def _on_our_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, NnfarmError)
    if error.kind.http_status >= 500:
        _log.error("%s %s: %s", request.method, request.url.path, error, exc_info=error)
    headers = {"WWW-Authenticate": "Bearer"} if error.kind.http_status == 401 else None
    return problem_response(error.to_problem(), headers)


def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    mistakes = [
        {"location": list(map(str, item["loc"])), "message": item["msg"], "kind": item["type"]}
        for item in error.errors()
    ]
    first = mistakes[0]
    place = first["location"]
    code = "request.invalid"
    if place[:2] == ["body", "options"]:
        code = _CODE_OF_BAD_OPTIONS.get(request.url.path, code)
    detail = f"{'.'.join(place)}: {first['message']}."
    return problem_response(NnfarmError(code, detail, errors=mistakes).to_problem())


def _on_framework_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODE_BY_STATUS.get(error.status_code, "request.invalid")
    details = {404: f"There is nothing at {request.url.path}."}
    detail = details.get(error.status_code, f"{request.method} {request.url.path}: {error.detail}.")
    headers = dict(error.headers) if error.headers else None
    return problem_response(NnfarmError(code, detail).to_problem(), headers)


def _on_database_error(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s %s: the database failed", request.method, request.url.path, exc_info=error)
    problem = NnfarmError("infra.unavailable", "The database does not answer; try again later.")
    return problem_response(problem.to_problem(), {"Retry-After": "2"})


def _on_unstorable_value(request: Request, error: Exception) -> JSONResponse:
    # PostgreSQL takes no zero byte in a text: not worth a check in every field.
    _log.info("%s %s: %s", request.method, request.url.path, error)
    detail = "A value of the request cannot be stored."
    return problem_response(NnfarmError("request.invalid", detail).to_problem())


def _on_bug(request: Request, error: Exception) -> JSONResponse:
    error_id = secrets.token_hex(8)
    _log.error("bug %s at %s %s", error_id, request.method, request.url.path, exc_info=error)
    detail = f"The service has a bug; its log has the trace under {error_id}."
    return problem_response(NnfarmError("bug.internal", detail, error_id=error_id).to_problem())
