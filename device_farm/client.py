"""The agent's side of the service's HTTP API; see docs/reference/http-api.md."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from service.contracts.artifacts import Sha256
from service.contracts.bench import BenchReport
from service.contracts.devices import AgentReport
from service.contracts.errors import NnfarmError, Problem, from_problem
from service.contracts.runs import BenchLease, Lease, LeaseRequest, RunLease, RunReport
from service.contracts.runtime_bundles import BundleTarget

_LEASES: TypeAdapter[Lease | BenchLease] = TypeAdapter(Lease | BenchLease)
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)  # a lease request waits up to 10 s by itself


class OfferedBundle(BaseModel):
    """A runtime bundle that the service has."""

    target: BundleTarget
    sha256: Sha256


class _BundlePage(BaseModel):
    items: tuple[OfferedBundle, ...]


class AgentClient:
    """Calls of one agent. Safe for several threads.

    Every call raises NnfarmError: the service's own error, or `infra.unavailable` when the
    service does not answer.
    """

    def __init__(self, url: str, agent_token: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=_TIMEOUT)
        self._agent_token = agent_token

    def close(self) -> None:
        """Gives up the connections."""
        self._http.close()

    def announce(self, report: AgentReport) -> None:
        """Tells which devices the agent has."""
        body = report.model_dump_json()
        self._call("PUT", f"/internal/v1/agents/{report.agent_name}", self._agent_token, body)

    def lease(self, request: LeaseRequest) -> Lease | BenchLease | None:
        """Asks for a run; None when there is none within the service's waiting time."""
        answer = self._call(
            "POST", "/internal/v1/leases", self._agent_token, request.model_dump_json()
        )
        if answer.status_code == httpx.codes.NO_CONTENT:
            return None
        try:
            return _LEASES.validate_json(answer.content)
        except ValidationError as error:
            raise NnfarmError("bug.internal", f"The lease is not readable: {error}") from error

    def heartbeat(self, lease: RunLease) -> None:
        """Keeps the lease; `request.fenced` when another agent has it now."""
        path = f"/internal/v1/runs/{lease.run_id}/heartbeat"
        self._call("POST", path, lease.lease_token, f'{{"fence": {lease.fence}}}')

    def tell_kernels(self, lease: BenchLease, report: BenchReport) -> None:
        """Kernels that are measured; `request.fenced` when another agent has the lease now."""
        path = f"/internal/v1/runs/{lease.run_id}/kernels"
        self._call("POST", path, lease.lease_token, report.model_dump_json())

    def report(self, lease: RunLease, report: RunReport) -> None:
        """The final word on the lease; `request.fenced` when another agent has it now."""
        path = f"/internal/v1/runs/{lease.run_id}/report"
        self._call("POST", path, lease.lease_token, report.model_dump_json())

    def download(self, lease: RunLease, sha256: str) -> Iterator[bytes]:
        """The bytes of a blob, in chunks."""
        return self._stream(f"/internal/v1/blobs/{sha256}", lease.lease_token)

    def runtime_bundles(self) -> tuple[OfferedBundle, ...]:
        """The newest runtime bundle of each target."""
        answer = self._call("GET", "/v1/runtime-bundles?limit=200", self._agent_token, "")
        try:
            items = _BundlePage.model_validate_json(answer.content).items
        except ValidationError as error:
            raise NnfarmError("bug.internal", f"The bundles are not readable: {error}") from error
        return tuple({bundle.target: bundle for bundle in reversed(items)}.values())

    def download_bundle(self, target: str) -> Iterator[bytes]:
        """The zip of a target's newest runtime bundle, in chunks."""
        return self._stream(f"/v1/runtime-bundles/{target}/content", self._agent_token)

    def _stream(self, path: str, token: str) -> Iterator[bytes]:
        headers = {"Authorization": f"Bearer {token}"}
        try:
            with self._http.stream("GET", path, headers=headers) as answer:
                if answer.is_error:
                    answer.read()
                    raise _error(answer)
                yield from answer.iter_bytes()
        except httpx.HTTPError as error:
            raise _unavailable(error) from error

    def _call(self, method: str, path: str, token: str, body: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            answer = self._http.request(method, path, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise _unavailable(error) from error
        if answer.is_error:
            raise _error(answer)
        return answer


def _error(answer: httpx.Response) -> NnfarmError:
    try:
        return from_problem(Problem.model_validate_json(answer.content))
    except ValidationError:
        # Not the service's own words: a proxy's, or a server in trouble.
        detail = f"{answer.request.method} {answer.request.url.path}: HTTP {answer.status_code}"
        return NnfarmError("infra.unavailable", detail, http_status=answer.status_code)


def _unavailable(error: httpx.HTTPError) -> NnfarmError:
    return NnfarmError("infra.unavailable", f"The service does not answer: {error}")
