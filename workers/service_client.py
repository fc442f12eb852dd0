"""The worker's part of the service's HTTP API; see docs/reference/http-api.md.

Every call may be repeated, so each is tried again after connection errors and 5xx answers.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from pydantic import ValidationError

from service.contracts.errors import ErrorClass, NnfarmError, Problem, from_problem
from service.contracts.jobs import JobFailure, JobOutcome, JobTicket, StageEvent
from workers.job_kind import JobKind, Outcome, Spec

_CHUNK_BYTES = 1024 * 1024
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_TRIES = 6
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0

logger = logging.getLogger(__name__)


class ServiceClient:
    """Calls with the workers' token.

    Args:
        url: address of the service.
        token: the workers' token.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._http = _connect(url, token)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def claim(self, kind: JobKind[Spec, Outcome], job_id: str, worker_name: str) -> Spec:
        """Takes a job.

        Raises:
            NnfarmError: `request.conflict`, it is final or another worker's; `infra.unavailable`,
                the service does not answer.
        """
        path = f"{_job(kind, job_id)}/claim"
        answer = _call(lambda: self._http.post(path, json={"worker_name": worker_name}))
        return kind.spec.model_validate_json(answer.content)

    def job(self, kind: JobKind[Spec, Outcome], job_id: str, ticket: JobTicket) -> JobClient:
        """Calls for one claimed job, with its own token."""
        http = _connect(self._url, ticket.job_token)
        return JobClient(http, _job(kind, job_id), job_id, ticket.attempt)


class JobClient:
    """Calls for one attempt at one job; every one may raise `request.fenced`."""

    def __init__(self, http: httpx.Client, path: str, job_id: str, attempt: int) -> None:
        self.job_id = job_id
        self._http = http
        self._path = path
        self._attempt = attempt

    def __enter__(self) -> JobClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send_events(self, events: Sequence[StageEvent]) -> None:
        """Reports progress and keeps the lease; may be empty."""
        body = {
            "attempt": self._attempt,
            "events": [event.model_dump(mode="json") for event in events],
        }
        self._post("events", body)

    def complete(self, outcome: JobOutcome) -> None:
        """Delivers the result; all blobs it names have been uploaded."""
        self._post("complete", outcome.model_dump(mode="json"))

    def fail(self, error: NnfarmError, log_tail: str) -> None:
        """Reports that the job cannot be done."""
        failure = JobFailure(attempt=self._attempt, problem=error.to_problem(), log_tail=log_tail)
        self._post("fail", failure.model_dump(mode="json"))

    def download(self, sha256: str, path: Path) -> None:
        """Writes a blob to `path`.

        Raises:
            NnfarmError: `infra.storage`, what came is not that blob.
        """
        _call(lambda: self._stream_to(sha256, path))

    def upload(self, sha256: str, path: Path) -> None:
        """Stores a file under its hash, unless the service has it."""
        if _call(lambda: self._http.head(_blob(sha256)), allow=404).status_code == 404:
            _call(lambda: self._put(sha256, path))

    def _post(self, call: str, body: dict[str, Any]) -> None:
        _call(lambda: self._http.post(f"{self._path}/{call}", json=body))

    def _put(self, sha256: str, path: Path) -> httpx.Response:
        length = {"Content-Length": str(path.stat().st_size)}
        return self._http.put(_blob(sha256), content=_chunks(path), headers=length)

    def _stream_to(self, sha256: str, path: Path) -> httpx.Response:
        digest = hashlib.sha256()
        with self._http.stream("GET", _blob(sha256)) as answer:
            if not answer.is_success:
                answer.read()
                return answer
            with path.open("wb") as file:
                for chunk in answer.iter_bytes(_CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
        if digest.hexdigest() != sha256:
            raise NnfarmError("infra.storage", f"The service sent other bytes for blob {sha256}.")
        return answer


def _connect(url: str, token: str) -> httpx.Client:
    # trust_env: a proxy of this machine must not see job tokens.
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT, trust_env=False)


def _job(kind: JobKind[Spec, Outcome], job_id: str) -> str:
    return f"/internal/v1/{kind.collection}/{job_id}"


def _blob(sha256: str) -> str:
    return f"/internal/v1/blobs/{sha256}"


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _call(send: Callable[[], httpx.Response], allow: int | None = None) -> httpx.Response:
    """Sends until there is an answer that is not the infrastructure's fault.

    Raises:
        NnfarmError: the answer's problem, or `infra.unavailable` after the last try.
    """
    for attempt in range(_TRIES):
        try:
            answer = send()
        except httpx.TransportError as error:
            failure = NnfarmError(
                "infra.unavailable", f"The service does not answer: {type(error).__name__} {error}"
            )
        else:
            if answer.is_success or answer.status_code == allow:
                return answer
            failure = _failure(answer)
            if not answer.is_server_error:
                raise failure
        if attempt + 1 < _TRIES:
            pause_s = min(_FIRST_PAUSE_S * 2**attempt, _LONGEST_PAUSE_S)
            logger.warning("%s; trying again in about %.1f s", failure.detail, pause_s)
            time.sleep(pause_s * random.uniform(0.5, 1.5))
    if failure.kind.error_class is ErrorClass.INFRA:
        raise failure
    raise NnfarmError("infra.unavailable", f"The service keeps failing: {failure.detail}")


def _failure(answer: httpx.Response) -> NnfarmError:
    try:
        return from_problem(Problem.model_validate_json(answer.content))
    except ValidationError:
        code = "infra.unavailable" if answer.is_server_error else "bug.internal"
        request = answer.request
        return NnfarmError(
            code, f"{request.method} {request.url.path} was answered {answer.status_code}."
        )
