"""The typed HTTP client: one method a call of docs/reference/http-api.md."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from service.client.connection import Connection, parse
from service.client.following import follow
from service.client.messages import (
    FINAL_JOB,
    FINAL_RUN,
    Artifact,
    ArtifactId,
    Compilation,
    CompilationId,
    CompilationRequest,
    Dataset,
    Device,
    DeviceId,
    Event,
    Explanation,
    Model,
    ModelId,
    Result,
    Run,
    RunId,
)
from service.client.packing import uploadable
from service.client.quantizations import Quantizations
from service.client.runtime_bundles import RuntimeBundles
from service.client.transfer import (
    CountedFile,
    OnBytes,
    ignore_bytes,
    sha256_of,
    write_checked,
    write_package,
)
from service.client.tunings import Tunings
from service.contracts.artifacts import ExplanationReport
from service.contracts.errors import NnfarmError

_PAGE_SIZE = 100


class Client:
    """Speaks to one service. Its calls raise `NnfarmError`.

    Calls that do not reach the service are repeated with growing pauses: for eight seconds at
    first, for a minute once it has answered, so that a restart of the service goes unnoticed. That
    is safe for every call here: uploads and compilations are keyed by their content.

    Args:
        url: of the service, for example http://127.0.0.1:8000.
        token: API token, where the service asks for one.
        transport: another way to the service, for tests.
    """

    def __init__(
        self, url: str, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._connection = Connection(url, token, transport)
        self.quantizations = Quantizations(self._connection)
        self.runtime_bundles = RuntimeBundles(self._connection)
        self.tunings = Tunings(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def upload_model(
        self, path: Path, name: str | None = None, on_bytes: OnBytes = ignore_bytes
    ) -> Model:
        """Upload a model, with its external data; the same bytes give the same model again."""
        fields = {"name": name or path.stem}
        with uploadable(path) as file:
            return parse(Model, self._upload("/v1/models", file, fields, on_bytes))

    def upload_dataset(
        self, path: Path, model_id: ModelId, on_bytes: OnBytes = ignore_bytes
    ) -> Dataset:
        """Upload an evaluation set (.npz) for a model."""
        return parse(Dataset, self._upload("/v1/datasets", path, {"model_id": model_id}, on_bytes))

    def download_model(self, model: Model, path: Path, on_bytes: OnBytes = ignore_bytes) -> None:
        """Save a model's file; its bytes are checked against the model's hash."""
        with self._connection.stream(f"/v1/models/{model.id}/content") as response:
            chunks = response.iter_bytes()
            write_checked(chunks, path, model.size_bytes, model.sha256, on_bytes)

    def models(self) -> list[Model]:
        """All models, newest first."""
        return [parse(Model, item) for item in self._items("/v1/models")]

    def devices(self) -> list[Device]:
        """All devices the service has heard of."""
        return [parse(Device, item) for item in self._items("/v1/devices")]

    def compile(self, request: CompilationRequest) -> Compilation:
        """Ask for artifacts; the same request again is answered from what is built."""
        body = request.model_dump(mode="json", exclude_none=True)
        return parse(Compilation, self._connection.json("POST", "/v1/compilations", json=body))

    def cancel(self, compilation_id: CompilationId) -> Compilation:
        """End a compilation that is not over."""
        path = f"/v1/compilations/{compilation_id}/cancel"
        return parse(Compilation, self._connection.json("POST", path))

    def start_run(self, artifact_id: ArtifactId, device_id: DeviceId) -> Run:
        """Queue a run of an artifact on one device."""
        body = {"artifact_id": artifact_id, "device_id": device_id}
        return parse(Run, self._connection.json("POST", "/v1/runs", json=body))

    def compilation(self, compilation_id: CompilationId) -> Compilation:
        """A compilation as it is now."""
        answer = self._connection.json("GET", f"/v1/compilations/{compilation_id}")
        return parse(Compilation, answer)

    def artifact(self, artifact_id: ArtifactId) -> Artifact:
        """An artifact with its manifest."""
        return parse(Artifact, self._connection.json("GET", f"/v1/artifacts/{artifact_id}"))

    def runs(self, compilation_id: CompilationId) -> list[Run]:
        """The runs of a compilation's artifacts."""
        items = self._items("/v1/runs", compilation_id=compilation_id)
        return [parse(Run, item) for item in items]

    def explanation(self, artifact: Artifact) -> Explanation:
        """Where each operation of an artifact runs, and why."""
        answer = self._connection.json("GET", f"/v1/artifacts/{artifact.id}/report")
        return Explanation(artifact=artifact, report=parse(ExplanationReport, answer))

    def results(
        self, compilation_id: CompilationId, without: Set[RunId] = frozenset()
    ) -> list[Result]:
        """A compilation's artifacts with their runs, by ABI, level and device.

        Args:
            compilation_id: whose results.
            without: runs to leave out, for example those of an earlier request for the same.
        """
        compilation = self.compilation(compilation_id)
        runs: dict[ArtifactId, list[Run]] = {}
        for run in self.runs(compilation_id):
            if run.id not in without:
                runs.setdefault(run.artifact_id, []).append(run)
        artifacts = [self.artifact(ref.id) for ref in compilation.artifacts]
        artifacts.sort(key=lambda artifact: (artifact.abi, artifact.feature_level))
        results = list[Result]()
        for artifact in artifacts:
            own: list[Run | None] = [*sorted(runs.get(artifact.id, []), key=_device_name)]
            results += [Result(artifact=artifact, run=run) for run in own or [None]]
        return results

    def download_package(
        self, artifact: Artifact, path: Path, on_bytes: OnBytes = ignore_bytes
    ) -> None:
        """Save an artifact's package; every part is checked against the manifest."""
        with self._connection.stream(f"/v1/artifacts/{artifact.id}/package") as response:
            length = int(response.headers["Content-Length"])
            write_package(response.iter_bytes(), path, length, on_bytes)

    def follow(self, compilation_id: CompilationId) -> Iterator[Event]:
        """Events of a compilation from its start until it and its runs are final.

        A broken connection is taken up again after the last event seen, when the service comes
        back within a minute.
        """
        path = f"/v1/compilations/{compilation_id}/events"
        return follow(self._connection, path, lambda: self._is_final(compilation_id))

    def _is_final(self, compilation_id: CompilationId) -> bool:
        status = self.compilation(compilation_id).status
        runs = self.runs(compilation_id)
        return status in FINAL_JOB and all(run.status in FINAL_RUN for run in runs)

    def _upload(
        self, url: str, path: Path, fields: dict[str, str], on_bytes: OnBytes
    ) -> dict[str, Any]:
        try:
            file = path.open("rb")
        except OSError as error:
            raise NnfarmError("request.invalid", f"{path}: {error.strerror}") from error
        with file:
            headers = {"X-Content-SHA256": sha256_of(file)}
            # httpx rewinds the file for every attempt.
            counted = CountedFile(file, on_bytes)
            files = {"file": (path.name, counted, "application/octet-stream")}
            return self._connection.json("POST", url, headers=headers, data=fields, files=files)

    def _items(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        params = {**query, "limit": str(_PAGE_SIZE)}
        while True:
            page = self._connection.json("GET", path, params=params)
            yield from page["items"]
            if not page.get("next_cursor"):
                return
            params["cursor"] = page["next_cursor"]


def _device_name(run: Run) -> str:
    return run.device.name if run.device else ""
