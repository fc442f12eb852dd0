"""A small service with the real one's messages and made-up content, over the built page.

For page tests, and for developing the page alone:

    PYTHONPATH=. python tests/web/fixture_service.py --port 8000

Prints one line, `listening on <url>`, when it is ready. `/_fixture/` steers it: append events to
the running compilation, cut its event streams, see how clients resumed, empty the farm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import fixture_data as data
import uvicorn
from fastapi import FastAPI, Form, Header, Request, UploadFile
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from fixture_bench import ARTIFACTS, DONE, at, sha256
from fixture_graph import explain
from fixture_steering import farm, steering

from service.contracts.artifacts import ExplanationReport
from service.contracts.errors import NnfarmError
from service.contracts.jobs import JobStatus
from service.pages import Page
from service.resources.artifacts.schemas import Artifact
from service.resources.compilations.schemas import Compilation, CompilationRequest
from service.resources.datasets.schemas import Dataset
from service.resources.devices.schemas import Device
from service.resources.models.schemas import Model
from service.resources.quantizations.schemas import Quantization
from service.resources.runs.schemas import Run
from service.resources.tunings.schemas import Tuning

DIST = Path(__file__).parents[2] / "web" / "dist"


app = FastAPI(title="nnfarm fixture")
app.include_router(steering)


@app.exception_handler(NnfarmError)
async def problem(_: Request, error: NnfarmError) -> JSONResponse:
    return JSONResponse(
        error.to_problem().model_dump(mode="json"),
        status_code=error.kind.http_status,
        media_type="application/problem+json",
    )


@app.middleware("http")
async def authorise(request: Request, call_next: Any) -> Response:
    asked = request.headers.get("authorization")
    if farm.token and request.url.path.startswith("/v1/") and asked != f"Bearer {farm.token}":
        return await problem(request, NnfarmError("request.unauthorized", "This farm has tokens."))
    response: Response = await call_next(request)
    return response


def _one(table: dict[str, Any], key: str) -> Any:
    if key not in table:
        raise NnfarmError("request.not_found", f"There is no {key}.")
    return table[key]


def _rest(end: int, everything: list[Any]) -> str | None:
    return str(end) if end < len(everything) else None


@app.post("/v1/models", status_code=201)
async def upload_model(file: UploadFile, name: Annotated[str | None, Form()] = None) -> Model:
    content = await file.read()
    if not content:
        raise NnfarmError("model.empty", f"{file.filename} has no bytes.")
    if not (file.filename or "").endswith(".onnx"):
        raise NnfarmError("model.unreadable", f"{file.filename} is not an ONNX protobuf.")
    model = data.model(name or Path(file.filename or "").stem, len(content))
    farm.models[model.id] = model
    return model


@app.get("/v1/models")
async def list_models() -> Page[Model]:
    return Page[Model](items=list(farm.models.values()))


@app.post("/v1/datasets", status_code=201)
async def upload_dataset(file: UploadFile, model_id: Annotated[str, Form()]) -> Dataset:
    content = await file.read()
    if b"spectrogram" not in content:
        raise NnfarmError("dataset.mismatch", "The dataset has no array named spectrogram.")
    return Dataset(
        id="dat_1",
        model_id=model_id,
        sha256=sha256("dataset"),
        size_bytes=len(content),
        sample_count=64,
        has_labels=True,
        created_at=at(0),
    )


@app.post("/v1/compilations", status_code=201)
async def create_compilation(request: CompilationRequest) -> Compilation:
    if "Nothing" in request.options.exclude_ops:
        raise NnfarmError("compile.bad_option", "The model has no operation of type Nothing.")
    farm.requests.append(request.model_dump(mode="json"))
    created = data.running().model_copy(
        update={"id": "cmp_new", "model": _one(farm.models, request.model_id)}
    )
    farm.compilations = {created.id: created, **farm.compilations}
    return created


@app.get("/v1/compilations")
async def list_compilations(limit: int = 20, cursor: str | None = None) -> Page[Compilation]:
    everything = list(farm.compilations.values())
    start = int(cursor or 0)
    end = start + limit
    return Page[Compilation](items=everything[start:end], next_cursor=_rest(end, everything))


@app.get("/v1/quantizations")
async def list_quantizations() -> Page[Quantization]:
    return Page[Quantization](items=farm.quantizations)


@app.get("/v1/tunings")
async def list_tunings() -> Page[Tuning]:
    return Page[Tuning](items=farm.tunings)


@app.get("/v1/compilations/{compilation_id}")
async def get_compilation(compilation_id: str) -> Compilation:
    found: Compilation = _one(farm.compilations, compilation_id)
    return found


@app.get("/v1/compilations/{compilation_id}/events")
async def stream_events(
    compilation_id: str, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    found: Compilation = _one(farm.compilations, compilation_id)
    farm.resumed_from.append(last_event_id)
    if farm.refusing:
        raise NnfarmError("infra.unavailable", "The event log is not reachable.")
    stream = _events(found.id, int(last_event_id or 0), farm.generation)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _events(compilation_id: str, sent: int, generation: int) -> AsyncIterator[str]:
    yield ": open\n\n"
    while generation == farm.generation:
        for sequence, event in enumerate(farm.events[sent:], start=sent + 1):
            yield f"id: {sequence}\nevent: {event['event']}\ndata: {json.dumps(event['data'])}\n\n"
        sent = len(farm.events)
        final = (JobStatus.SUCCEEDED, JobStatus.FAILED)
        if farm.compilations[compilation_id].status in final:
            return
        await asyncio.sleep(0.02)


@app.get("/v1/artifacts/{artifact_id}")
async def get_artifact(artifact_id: str) -> Artifact:
    found: Artifact = _one(ARTIFACTS, artifact_id)
    return found


@app.get("/v1/artifacts/{artifact_id}/report")
async def get_report(artifact_id: str) -> ExplanationReport:
    return explain(_one(ARTIFACTS, artifact_id).feature_level)


@app.get("/v1/artifacts/{artifact_id}/package")
async def get_package(artifact_id: str) -> Response:
    _one(ARTIFACTS, artifact_id)
    disposition = {"Content-Disposition": f'attachment; filename="{artifact_id}.zip"'}
    return Response(b"PK\x05\x06" + bytes(18), media_type="application/zip", headers=disposition)


@app.get("/v1/devices")
async def list_devices(limit: int = 20, cursor: str | None = None) -> Page[Device]:
    everything = list(farm.devices.values())
    start = int(cursor or 0)
    end = start + limit
    return Page[Device](items=everything[start:end], next_cursor=_rest(end, everything))


@app.get("/v1/devices/{device_id}")
async def get_device(device_id: str) -> Device:
    found: Device = _one(farm.devices, device_id)
    return found


@app.get("/v1/runs")
async def list_runs(compilation_id: str, limit: int = 20, cursor: str | None = None) -> Page[Run]:
    _one(farm.compilations, compilation_id)
    everything = list(farm.runs.values()) if compilation_id == DONE else []
    start = int(cursor or 0)
    end = start + min(limit, 7)  # small, so that the page has to follow cursors
    return Page[Run](items=everything[start:end], next_cursor=_rest(end, everything))


@app.get("/v1/runs/{run_id}")
async def get_run(run_id: str) -> Run:
    found: Run = _one(farm.runs, run_id)
    return found


@app.get("/{path:path}", include_in_schema=False)
async def page(path: str) -> FileResponse:
    """The built page; unknown paths are the page's own routes."""
    if path.startswith("v1/"):
        raise NnfarmError("request.not_found", f"There is no /{path}.")
    file = DIST / path
    return FileResponse(file if path and file.is_file() else DIST / "index.html")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if not (DIST / "index.html").is_file():
        raise SystemExit(f"{DIST} is not built: run `npm ci && npm run build` in web/ first.")
    listener = socket.create_server(("127.0.0.1", options.port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
