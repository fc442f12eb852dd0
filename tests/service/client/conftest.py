"""A small service on loopback that speaks the public part of docs/reference/http-api.md.

It is a stand-in for one purpose: to break in the ways a real network breaks. The client against the
real service is in tests/stack.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from service.client import Client
from service.contracts.errors import NnfarmError

SIGNATURE = {
    "inputs": [{"name": "image", "dtype": "float32", "shape": [1, 1, 8, 8]}],
    "outputs": [{"name": "logits", "dtype": "float32", "shape": [1, 10]}],
}
LIBRARY = b"\x7fELF" + bytes(range(256)) * 20


def _manifest(level: int, abi: str) -> dict[str, Any]:
    digest = hashlib.sha256(LIBRARY).hexdigest()
    return {
        "model_sha256": "a" * 64,
        "model_name": "digits",
        "feature_level": level,
        "needed_level": 1,
        "abi": abi,
        "signature": SIGNATURE,
        "subgraph_count": 1,
        "offloaded_count": 12,
        "operation_count": 13,
        "parts": [
            {"role": "library", "path": "model.so", "sha256": digest, "size_bytes": len(LIBRARY)}
        ],
        "versions": {"tvm": "0.27.0"},
        "options": {},
    }


def _measurement(agreement: float, max_abs_error: float) -> dict[str, Any]:
    return {
        "engine": "mixed",
        "accelerators": ["sim-npu/1.0/4"],
        "latency": {
            "count": 20, "min_us": 290.0, "median_us": 300.0, "mean_us": 301.0, "p90_us": 320.0,
            "p99_us": 330.0, "max_us": 331.0, "mad_us": 2.0, "simulated": True,
        },
        "samples_us": [300.0],
        "load_us": 1.0, "compile_us": 1.0, "first_run_us": 1.0, "peak_memory_bytes": None,
        "accuracy": {
            "sample_count": 200,
            "outputs": [{
                "name": "logits", "max_abs_error": max_abs_error, "max_rel_error": 1e-6,
                "mean_abs_error": 1e-7, "matches_nan": True,
            }],
            "max_abs_error": max_abs_error, "max_rel_error": 1e-6,
            "top1": 0.985, "original_top1": 0.99, "agreement": agreement,
        },
        "before": {}, "after": {}, "valid": True,
    }  # fmt: skip


class FarmApp:
    """State and faults of the stand-in; tests set the attributes."""

    def __init__(self) -> None:
        self.uploads: dict[str, bytes] = {}
        self.uploaded_names: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.tokens: list[str | None] = []
        self.last_event_ids: list[str | None] = []
        self.unavailable_count = 0
        self.break_after_events: list[int] = []
        self.is_final = True
        self.failure: dict[str, Any] | None = None
        self.run_error: dict[str, Any] | None = None
        self.run_status = "succeeded"
        self.earlier_runs: list[dict[str, Any]] = []
        self.agreement = 1.0
        self.max_abs_error = 1e-5
        self.package_library = LIBRARY
        self.cut_package_at: int | None = None
        self.events: list[tuple[str, dict[str, Any]]] = [
            ("progress", {"stage": "ingest", "done": 1, "total": 3}),
            ("progress", {"stage": "build", "done": 2, "total": 3}),
            ("status", {"status": "succeeded"}),
        ]
        self.app = FastAPI()
        self._add_routes()

    @property
    def levels(self) -> list[tuple[int, str]]:
        body = self.requests[-1] if self.requests else {"levels": [4], "abis": ["x86_64"]}
        return [(level, abi) for abi in body["abis"] for level in body["levels"]]

    def compilation(self) -> dict[str, Any]:
        status = "failed" if self.failure else "succeeded" if self.is_final else "running"
        artifacts = [{"id": f"art_{level}.{abi}"} for level, abi in self.levels]
        return {
            "id": "cmp_1",
            "status": status,
            "done": 3,
            "total": 3,
            "error": self.failure,
            "artifacts": [] if self.failure else artifacts,
            "runs": [{"id": run["id"], "status": run["status"]} for run in self.earlier_runs],
            "a_field_of_the_future": True,
        }

    def run(self, level: int, abi: str) -> dict[str, Any]:
        measured = self.run_status == "succeeded"
        return {
            "id": f"run_{level}.{abi}",
            "artifact_id": f"art_{level}.{abi}",
            "device": {"id": "dev_1", "name": "virtual-level4-x86_64"} if measured else None,
            "status": self.run_status,
            "attempt": 1,
            "measurement": _measurement(self.agreement, self.max_abs_error) if measured else None,
            "error": self.run_error,
        }

    def package(self, level: int, abi: str) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as package:
            # Of one date, so that the same package is the same bytes a second later.
            for name, content in (
                ("manifest.json", json.dumps(_manifest(level, abi)).encode()),
                ("model.so", self.package_library),
            ):
                package.writestr(zipfile.ZipInfo(name), content)
        return out.getvalue()

    def _add_routes(self) -> None:
        add = self.app.add_api_route
        add("/v1/models", self._post_model, methods=["POST"], status_code=201)
        add("/v1/models", self._list_models)
        add("/v1/datasets", self._post_dataset, methods=["POST"], status_code=201)
        add("/v1/compilations", self._post_compilation, methods=["POST"], response_model=None)
        add("/v1/compilations/cmp_1", self.compilation)
        add("/v1/compilations/cmp_1/events", self._get_events, response_model=None)
        add("/v1/runs", self._list_runs)
        add("/v1/artifacts/art_{level}.{abi}/package", self._get_package, response_model=None)
        add("/v1/artifacts/art_{level}.{_}/report", self._get_report)
        add("/v1/artifacts/art_{level}.{abi}", self._get_artifact)
        add("/v1/devices", self._list_devices)
        add("/v1/page", self._get_page, response_model=None)

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI entry: notes the call, then answers it or not."""
        request = Request(scope)
        self.calls.append(f"{request.method} {request.url.path}")
        self.tokens.append(request.headers.get("Authorization"))
        if self.unavailable_count:
            self.unavailable_count -= 1
            problem = NnfarmError("infra.unavailable", "starting").to_problem()
            await JSONResponse(problem.model_dump(mode="json"), 503)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _upload(self, request: Request) -> tuple[str, bytes]:
        form = await request.form()
        file: Any = form["file"]
        content = await file.read()
        digest = hashlib.sha256(content).hexdigest()
        assert request.headers["X-Content-SHA256"] == digest
        self.uploads[digest] = content
        self.uploaded_names.append(str(form.get("name")))
        await form.close()
        return digest, content

    async def _post_model(self, request: Request) -> dict[str, Any]:
        digest, content = await self._upload(request)
        return self.model(digest, len(content))

    async def _list_models(self, cursor: str = "0") -> dict[str, Any]:
        # Two pages: the client must ask for the second.
        return {
            "items": [self.model(cursor * 64, 10)],
            "next_cursor": "1" if cursor == "0" else None,
        }

    async def _post_dataset(self, request: Request) -> dict[str, Any]:
        digest, content = await self._upload(request)
        return {
            "id": "dat_1", "sha256": digest, "size_bytes": len(content), "sample_count": 200,
            "has_labels": True,
        }  # fmt: skip

    async def _post_compilation(self, request: Request) -> JSONResponse:
        body = await request.json()
        if 9 in body["levels"]:
            error = NnfarmError("compile.bad_level", "Feature level 9 is not one of 1 to 8.")
            return JSONResponse(error.to_problem().model_dump(mode="json"), 422)
        self.requests.append(body)
        return JSONResponse(self.compilation() | {"cached": False}, 201)

    async def _get_events(self, request: Request) -> StreamingResponse:
        last_id = request.headers.get("Last-Event-ID")
        self.last_event_ids.append(last_id)
        return StreamingResponse(self.stream(int(last_id or 0)), media_type="text/event-stream")

    async def _list_runs(self) -> dict[str, Any]:
        items = [self.run(level, abi) for level, abi in self.levels] + self.earlier_runs
        return {"items": items if self.is_final else [], "next_cursor": None}

    async def _get_package(self, level: int, abi: str) -> Response:
        content = self.package(level, abi)
        headers = {"Content-Length": str(len(content))}

        async def pieces() -> AsyncIterator[bytes]:
            yield content[: self.cut_package_at]
            if self.cut_package_at is not None:
                raise ConnectionResetError

        return StreamingResponse(pieces(), headers=headers)

    async def _get_report(self, level: int) -> dict[str, Any]:
        rejection = {"code": "nnapi.excluded", "sentence": "Softmax [a] was excluded."}
        return {
            "feature_level": level,
            "operations": [
                {"name": "/conv/Conv", "op_type": "Conv", "placement": "nnapi", "subgraph": 0,
                 "nnapi_operations": ["CONV_2D"]},
                {"name": "/s/Softmax", "op_type": "Softmax", "placement": "cpu",
                 "rejection": rejection},
            ],
            "offloaded_count": 1, "operation_count": 2, "subgraph_count": 1,
        }  # fmt: skip

    async def _get_artifact(self, level: int, abi: str) -> dict[str, Any]:
        return {
            "id": f"art_{level}.{abi}", "compilation_id": "cmp_1", "feature_level": level,
            "abi": abi, "manifest": _manifest(level, abi), "size_bytes": 61440,
        }  # fmt: skip

    async def _list_devices(self) -> dict[str, Any]:
        about = {
            "serial": "127.0.0.1:5601", "name": "virtual-level4-x86_64", "model": "virtual",
            "abis": ["x86_64"], "sdk_level": 30, "feature_level": 4, "simulated": True,
        }  # fmt: skip
        device = {"id": "dev_1", "state": "online", "description": about}
        return {"items": [device], "next_cursor": None}

    async def _get_page(self) -> Response:
        return Response("<html>", media_type="text/html")

    def model(self, digest: str, size_bytes: int) -> dict[str, Any]:
        return {
            "id": f"mod_{digest[:4]}", "name": "digits", "format": "onnx", "sha256": digest,
            "size_bytes": size_bytes, "signature": SIGNATURE,
            "created_at": "2026-01-01T00:00:00Z",
        }  # fmt: skip

    async def stream(self, after: int) -> AsyncIterator[str]:
        budget = self.break_after_events.pop(0) if self.break_after_events else None
        yield ": ping\n\n"
        for number, (kind, data) in enumerate(self.events, start=1):
            if number <= after:
                continue
            if budget == 0:
                raise ConnectionResetError
            budget = None if budget is None else budget - 1
            yield f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"


@pytest.fixture
def farm() -> FarmApp:
    return FarmApp()


@pytest.fixture
def url(farm: FarmApp) -> Iterator[str]:
    """The stand-in behind a real socket."""
    config = uvicorn.Config(
        farm.serve, port=0, interface="asgi3", log_level="critical", lifespan="off"
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    socket.close()


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


@pytest.fixture
def nnfarm(url: str) -> Callable[..., int]:
    """The command against the stand-in; returns the exit code."""
    from service.client.command import run

    return lambda *arguments: int(run(["--url", url, *map(str, arguments)]))
