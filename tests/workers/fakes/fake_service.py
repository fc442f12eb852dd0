"""The worker's part of the service's HTTP API over dictionaries, on a real socket."""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from service.contracts.errors import NnfarmError
from service.contracts.jobs import (
    CompileOptions,
    CompileOutcome,
    CompileTarget,
    JobFailure,
    JobOutcome,
    JobSpec,
    JobTicket,
    ModelFormat,
    StageEvent,
)
from service.contracts.quantization import QuantizeOptions, QuantizeOutcome, QuantizeSpec
from service.contracts.targets import Abi
from service.contracts.tensors import ModelSignature
from service.contracts.tuning import KernelKey, TuneOutcome, TuneSpec

WORKER_TOKEN = "worker-token"
JOB_TOKEN = "job-token"
OUTCOMES: dict[str, type[JobOutcome]] = {
    "compilations": CompileOutcome,
    "quantizations": QuantizeOutcome,
    "tunings": TuneOutcome,
}


class FakeService:
    """State a test sets and looks at.

    Attributes:
        answers: status codes to give to the next calls instead of doing them.
        fenced_after: number of event reports after which the job is another worker's.
        damaged_blobs: blobs are sent with other bytes than their names say.
    """

    def __init__(self) -> None:
        self.url = ""
        self.blobs: dict[str, bytes] = {}
        self.jobs: dict[str, JobTicket] = {}
        self.events: list[StageEvent] = []
        self.outcomes: list[Any] = []
        self.failures: list[JobFailure] = []
        self.calls: Counter[str] = Counter()
        self.answers: list[int] = []
        self.fenced_after: int | None = None
        self.damaged_blobs = False
        self.changed = threading.Condition()

    def add_blob(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return digest

    def add_job(self, model: bytes, dataset: bytes | None = None, attempt: int = 1) -> str:
        spec = JobSpec(
            compilation_id=f"cmp_{len(self.jobs)}",
            attempt=attempt,
            job_token=JOB_TOKEN,
            model_name="fake",
            model_format=ModelFormat.ONNX,
            model_sha256=self.add_blob(model),
            model_size_bytes=len(model),
            dataset_sha256=None if dataset is None else self.add_blob(dataset),
            targets=(CompileTarget(feature_level=1, abi=Abi.X86_64),),
            options=CompileOptions(),
        )
        self.jobs[spec.compilation_id] = spec
        return spec.compilation_id

    def add_quantization(
        self, model: bytes, signature: ModelSignature, dataset: bytes, options: QuantizeOptions
    ) -> str:
        spec = QuantizeSpec(
            quantization_id=f"qnt_{len(self.jobs)}",
            attempt=1,
            job_token=JOB_TOKEN,
            model_sha256=self.add_blob(model),
            signature=signature,
            dataset_sha256=self.add_blob(dataset),
            options=options,
        )
        self.jobs[spec.quantization_id] = spec
        return spec.quantization_id

    def add_tuning(
        self, model: bytes, time_budget_s: float, known: tuple[KernelKey, ...] = ()
    ) -> str:
        spec = TuneSpec(
            tuning_id=f"tun_{len(self.jobs)}",
            attempt=1,
            job_token=JOB_TOKEN,
            model_format=ModelFormat.ONNX,
            model_sha256=self.add_blob(model),
            time_budget_s=time_budget_s,
            known=known,
            tuned=(),
        )
        self.jobs[spec.tuning_id] = spec
        return spec.tuning_id

    def wait_for_end(self, timeout_s: float) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.outcomes or self.failures, timeout_s)


def _problem(code: str) -> Response:
    problem = NnfarmError(code, f"The fake says {code}.").to_problem()
    return JSONResponse(problem.model_dump(mode="json"), problem.status)


def _build(state: FakeService) -> FastAPI:
    app = FastAPI()
    _add_gate(app, state)
    _add_jobs(app, state)
    _add_blobs(app, state)
    return app


def _add_gate(app: FastAPI, state: FakeService) -> None:
    @app.middleware("http")
    async def gate(request: Request, call_next):  # type: ignore[no-untyped-def]
        name = request.url.path.rsplit("/", 1)[-1]
        state.calls[request.method if "/blobs/" in request.url.path else name] += 1
        token = WORKER_TOKEN if name == "claim" else JOB_TOKEN
        if state.answers and (status := state.answers.pop(0)) != 200:
            return Response(status_code=status)
        if request.headers.get("authorization") != f"Bearer {token}":
            return _problem("request.unauthorized")
        answer = await call_next(request)
        with state.changed:
            state.changed.notify_all()
        return answer


def _add_jobs(app: FastAPI, state: FakeService) -> None:
    prefix = "/internal/v1/{collection}/{job_id}"

    @app.post(prefix + "/claim")
    def claim(job_id: str, body: dict[str, str]) -> Response:
        assert body["worker_name"]
        if job_id not in state.jobs:
            return _problem("request.not_found")
        if state.outcomes or state.failures:
            return _problem("request.conflict")
        return Response(state.jobs[job_id].model_dump_json())

    @app.post(prefix + "/events")
    def events(job_id: str, body: dict[str, object]) -> Response:
        if state.fenced_after is not None and state.calls["events"] > state.fenced_after:
            return _problem("request.fenced")
        assert body["attempt"] == state.jobs[job_id].attempt
        state.events += [StageEvent.model_validate(item) for item in body["events"]]  # type: ignore[attr-defined]
        return Response(status_code=204)

    @app.post(prefix + "/complete", status_code=204)
    def complete(collection: str, job_id: str, body: dict[str, object]) -> None:
        outcome = OUTCOMES[collection].model_validate(body)
        assert outcome.attempt == state.jobs[job_id].attempt
        state.outcomes.append(outcome)

    @app.post(prefix + "/fail", status_code=204)
    def fail(job_id: str, body: JobFailure) -> None:
        assert body.attempt == state.jobs[job_id].attempt
        state.failures.append(body)


def _add_blobs(app: FastAPI, state: FakeService) -> None:
    @app.get("/internal/v1/blobs/{sha256}")
    @app.head("/internal/v1/blobs/{sha256}")
    def blob(sha256: str) -> Response:
        if sha256 not in state.blobs:
            return _problem("request.not_found")
        return Response(b"damaged" if state.damaged_blobs else state.blobs[sha256])

    @app.put("/internal/v1/blobs/{sha256}")
    async def store(sha256: str, request: Request) -> Response:
        content = await request.body()
        if hashlib.sha256(content).hexdigest() != sha256:
            return _problem("request.hash_mismatch")
        state.blobs[sha256] = content
        return Response(status_code=204)


@contextmanager
def serve() -> Iterator[FakeService]:
    """A fake service on a free port of the loopback interface."""
    state = FakeService()
    config = uvicorn.Config(_build(state), port=0, log_level="warning", lifespan="off")
    sock = config.bind_socket()
    state.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    server = uvicorn.Server(config)
    # The socket listens before the server runs, so a call made now just waits its turn.
    sock.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield state
    finally:
        server.should_exit = True
        thread.join()
        sock.close()
