"""One service behind one URL: requests with retries, answers checked, errors as `NnfarmError`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from service.contracts.errors import ErrorClass, NnfarmError, Problem, from_problem

_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
# A service that has never answered may be a wrong address; one that has is restarting.
_PATIENCE_S = 8.0
_PATIENCE_ONCE_REACHED_S = 60.0
# A stream that is silent for longer than a few keep-alive pings is dead.
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)

_M = TypeVar("_M", bound=BaseModel)

BuildRequest = Callable[[], httpx.Request]


class Connection:
    """Sends requests; repeats those that did not reach the service or met an infra error.

    Args:
        url: of the service, for example http://127.0.0.1:8000.
        token: API token, where the service asks for one.
        transport: another way to the service, for tests.
    """

    def __init__(
        self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise NnfarmError("request.invalid", f"{url!r} does not begin with http:// or https://")
        self.url = url.rstrip("/")
        self._patience_s = _PATIENCE_S
        # Proxies of the environment are for the outside; a farm is reached directly.
        self._http = httpx.Client(
            base_url=self.url, timeout=_TIMEOUT, transport=transport, trust_env=False
        )
        if token:
            self._http.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close the sockets."""
        self._http.close()

    def json(self, method: str, path: str, **parts: Any) -> dict[str, Any]:
        """The JSON object a call answers with; `parts` as of `httpx.Client.build_request`."""
        with self._sent(lambda: self._http.build_request(method, path, **parts)) as response:
            try:
                response.read()
                content = response.json()
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
            except ValueError as error:
                raise NnfarmError(
                    "bug.internal", f"{self.url}{path} answered no JSON: is this an nnfarm service?"
                ) from error
        if not isinstance(content, dict):
            raise NnfarmError("bug.internal", f"{self.url}{path} answered no JSON object")
        return content

    @contextmanager
    def stream(self, path: str, headers: dict[str, str] | None = None) -> Iterator[httpx.Response]:
        """An answer that is read as it comes.

        Raises:
            NnfarmError: `infra.unavailable` also where the connection breaks while it is read.
        """
        try:
            with self._sent(
                lambda: self._http.build_request("GET", path, headers=headers)
            ) as response:
                yield response
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    @contextmanager
    def _sent(self, build: BuildRequest) -> Iterator[httpx.Response]:
        response = self._send(build)
        try:
            yield response
        finally:
            response.close()

    def _send(self, build: BuildRequest) -> httpx.Response:
        started_at, pause_s = time.monotonic(), _FIRST_PAUSE_S
        while True:
            try:
                response = self._send_once(build())
            except NnfarmError as error:
                if error.kind.error_class is not ErrorClass.INFRA:
                    raise
                if time.monotonic() - started_at + pause_s > self._patience_s:
                    raise
            else:
                self._patience_s = _PATIENCE_ONCE_REACHED_S
                return response
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        try:
            response = self._http.send(request, stream=True)
            if response.is_success:
                return response
            try:
                response.read()
            finally:
                response.close()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        raise _error_of(response)

    def _unreachable(self, error: httpx.TransportError) -> NnfarmError:
        reason = str(error) or type(error).__name__
        return NnfarmError("infra.unavailable", f"no answer from {self.url}: {reason}")


def _error_of(response: httpx.Response) -> NnfarmError:
    try:
        return from_problem(Problem.model_validate_json(response.content))
    except ValidationError:
        # A proxy's page, or another server's.
        code = "infra.unavailable" if response.is_server_error else "bug.internal"
        status = f"{response.status_code} {response.reason_phrase}".strip()
        return NnfarmError(code, f"{response.url} answered {status} without a problem body")


def parse(kind: type[_M], answer: dict[str, Any]) -> _M:
    """An answer as a message of this client."""
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise NnfarmError(
            "bug.internal",
            f"the service's {kind.__name__} does not fit this client: {where}: {first['msg']}",
        ) from error
