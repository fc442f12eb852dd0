"""A small real HTTP server that speaks the agent's part of docs/reference/http-api.md."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse

from service.contracts.devices import AgentReport
from service.contracts.errors import NnfarmError
from service.contracts.jobs import EvaluationSet
from service.contracts.runs import Lease, LeaseRequest, MeasureOptions, RunReport
from tests.device_farm.stand_in import Package, sha256

AGENT_TOKEN = "agents-only"


class ServiceStandIn:
    """Holds runs for any device and remembers what agents said. Waits are on a condition."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.announced: list[AgentReport] = []
        self.reports: dict[str, RunReport] = {}
        self.heartbeats: list[str] = []
        self.downloads: list[str] = []
        self.fenced: set[str] = set()
        self.leased: dict[str, str] = {}
        self.bundles: dict[str, bytes] = {}
        self.is_damaging_bundles = False
        self._blobs: dict[str, bytes] = {}
        self._waiting: list[tuple[str, Package, float, float]] = []

    def add_run(
        self,
        run_id: str,
        package: Package,
        *,
        lease_s: float = 30.0,
        timeout_s: float = 30.0,
        damaged: str = "",
    ) -> None:
        """Queues a run; the blob whose hash is `damaged` comes with other bytes."""
        with self.condition:
            self._blobs.update(package.blobs)
            if damaged:
                self._blobs[damaged] = b"other bytes"
            self._waiting.append((run_id, package, lease_s, timeout_s))
            self.condition.notify_all()

    def wait_for_report(self, run_id: str) -> RunReport:
        with self.condition:
            assert self.condition.wait_for(lambda: run_id in self.reports, 40), "no report came"
            return self.reports[run_id]

    def wait_until(self, predicate: Callable[[], object]) -> None:
        with self.condition:
            assert self.condition.wait_for(predicate, 40), "it did not come to that"

    def lease(self, request: LeaseRequest) -> Lease | None:
        with self.condition:
            if not self.condition.wait_for(lambda: self._waiting, 1.0):
                return None
            run_id, package, lease_s, timeout_s = self._waiting.pop(0)
            self.leased[run_id] = request.serials[0]
            self.condition.notify_all()
        return Lease(
            run_id=run_id,
            fence=7,
            serial=request.serials[0],
            lease_token=f"lease-{run_id}",
            expires_in_s=lease_s,
            artifact_id="art_1",
            abi=package.manifest.abi,
            manifest=package.manifest,
            evaluation=EvaluationSet(
                sample_count=4,
                inputs_sha256=package.inputs_sha256,
                expected_sha256=package.expected_sha256,
                synthetic=True,
            ),
            measure=MeasureOptions(timeout_s=timeout_s),
        )

    def note(self, change: Callable[[], object]) -> None:
        with self.condition:
            change()
            self.condition.notify_all()

    def blob(self, sha256: str) -> bytes:
        self.note(lambda: self.downloads.append(sha256))
        return self._blobs[sha256]


def agent(authorization: str = Header("")) -> None:
    if authorization != f"Bearer {AGENT_TOKEN}":
        raise NnfarmError("request.unauthorized", "Not an agent's token.")


def make_app(state: ServiceStandIn) -> FastAPI:
    app = FastAPI()

    @app.exception_handler(NnfarmError)
    async def problem(_: Request, error: NnfarmError) -> Response:
        body = error.to_problem()
        return JSONResponse(body.model_dump(), body.status, media_type="application/problem+json")

    def lease_token(run_id: str, authorization: str = Header("")) -> None:
        if authorization != f"Bearer lease-{run_id}":
            raise NnfarmError("request.unauthorized", "Not this lease's token.")
        if run_id in state.fenced:
            raise NnfarmError("request.fenced", "Another agent has it.")

    @app.put("/internal/v1/agents/{name}", dependencies=[Depends(agent)])
    def announce(name: str, report: AgentReport) -> dict[str, list[str]]:
        assert name == report.agent_name
        state.note(lambda: state.announced.append(report))
        return {"items": []}

    @app.post("/internal/v1/leases", dependencies=[Depends(agent)])
    def lease(request: LeaseRequest) -> Response:
        found = state.lease(request)
        body = found and found.model_dump_json()
        return Response(body, 200 if body else 204, media_type="application/json")

    @app.post(
        "/internal/v1/runs/{run_id}/heartbeat", status_code=204, dependencies=[Depends(lease_token)]
    )
    def heartbeat(run_id: str, body: dict[str, int]) -> None:
        assert body == {"fence": 7}
        state.note(lambda: state.heartbeats.append(run_id))

    @app.post(
        "/internal/v1/runs/{run_id}/report", status_code=204, dependencies=[Depends(lease_token)]
    )
    def report(run_id: str, body: RunReport) -> None:
        assert body.fence == 7
        state.note(lambda: state.reports.update({run_id: body}))

    @app.get("/internal/v1/blobs/{sha256}")
    def blob(sha256: str, authorization: str = Header("")) -> Response:
        assert authorization.startswith("Bearer lease-"), authorization
        return Response(state.blob(sha256), media_type="application/octet-stream")

    @app.get("/v1/runtime-bundles", dependencies=[Depends(agent)])
    def runtime_bundles() -> dict[str, list[dict[str, str]]]:
        found = state.bundles.items()
        return {"items": [{"target": name, "sha256": sha256(content)} for name, content in found]}

    @app.get("/v1/runtime-bundles/{target}/content", dependencies=[Depends(agent)])
    def runtime_bundle(target: str) -> Response:
        state.note(lambda: state.downloads.append(target))
        content = b"other bytes" if state.is_damaging_bundles else state.bundles[target]
        return Response(content, media_type="application/zip")

    return app


@contextmanager
def serve(state: ServiceStandIn, port: int = 0) -> Iterator[int]:
    """Serves in a thread.

    Yields:
        The port.
    """
    config = uvicorn.Config(
        make_app(state), port=port, log_level="warning", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        socket.close()
