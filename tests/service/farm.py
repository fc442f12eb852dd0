"""A running service for tests, and the parts its callers play: users, workers, agents."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn

from service.app import create_app
from service.components import Components
from service.contracts.jobs import ModelFormat
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from service.resources.blobs import service as blob_rules
from service.resources.models import service as model_rules
from service.settings import Settings
from service.storage.incoming import Incoming

T = TypeVar("T")
WORKER_TOKEN = "token-of-workers"
AGENT_TOKEN = "token-of-agents"
SIGNATURE = ModelSignature(
    inputs=(TensorSpec(name="image", dtype=DType.FLOAT32, shape=(1, 1, 8, 8)),),
    outputs=(TensorSpec(name="scores", dtype=DType.FLOAT32, shape=(1, 10)),),
)


def eventually(look: Callable[[], T], timeout_s: float = 15.0) -> T:
    """Look again and again until the answer is true."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing came of {look} in {timeout_s} s")
        pause.wait(0.02)
    return found


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Farm:
    """A running service, and the parts its callers play."""

    settings: Settings
    components: Components
    client: httpx.Client
    _serial: int = field(default=0)

    def seed_model(self, content: bytes = b"a model") -> str:
        """A model whose inspection is not the point: it takes a second."""
        staging = self.components.blobs.staging_dir
        with Incoming(staging, 1 << 20, lambda _: AssertionError()) as incoming:  # type: ignore[arg-type, return-value]
            incoming.write(content)
            staged = incoming.finish()
            self.components.blobs.put(staged)
        with self.components.database.writing() as session:
            blob_rules.record(session, staged)
            kept = model_rules.add_model(session, staged, "digits", ModelFormat.ONNX, SIGNATURE)
            return kept[0].id

    def compile(self, **request: Any) -> dict[str, Any]:
        """Ask for a compilation; by default of the seeded model, never asked for before."""
        self._serial += 1
        body = {"levels": [1, 4], "abis": ["x86_64"], **request}
        body.setdefault("model_id", self.seed_model())
        body.setdefault("options", {"exclude_ops": [f"Op{self._serial}"]})
        return self.ok(self.client.post("/v1/compilations", json=body))

    def claim(self, compilation_id: str) -> dict[str, Any]:
        """Be a worker who gets the job."""
        answer = self.client.post(
            f"/internal/v1/compilations/{compilation_id}/claim",
            json={"worker_name": "w1"},
            headers=bearer(WORKER_TOKEN),
        )
        return self.ok(answer)

    def job_call(self, spec: dict[str, Any], call: str, body: dict[str, Any]) -> httpx.Response:
        """One of a worker's later calls."""
        path = f"/internal/v1/compilations/{spec['compilation_id']}/{call}"
        body = {"attempt": spec["attempt"], **body}
        return self.client.post(path, json=body, headers=bearer(spec["job_token"]))

    def put_blob(self, token: str, content: bytes) -> str:
        """Upload a blob and give its hash."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = f"/internal/v1/blobs/{sha256}"
        assert self.client.put(path, content=content, headers=bearer(token)).status_code == 204
        return sha256

    def outcome(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Upload small artifacts for every target; the body that completes the job."""
        report = {
            "feature_level": 1,
            "operations": [],
            "offloaded_count": 2,
            "operation_count": 3,
            "subgraph_count": 1,
        }
        contents = {
            "model.so": ("library", b"\x7fELF" + b"l" * 5000),
            "weights.bin": ("weights", b"w" * 4097),
            "report.json": ("report", json.dumps(report).encode()),
        }
        parts = [
            {
                "role": role,
                "path": path,
                "sha256": self.put_blob(spec["job_token"], content),
                "size_bytes": len(content),
            }
            for path, (role, content) in contents.items()
        ]
        inputs = self.put_blob(spec["job_token"], b"inputs")
        expected = self.put_blob(spec["job_token"], b"expected")
        signature = SIGNATURE.model_dump(mode="json")
        artifacts = [
            {
                "target": target,
                "manifest": {
                    "model_sha256": spec["model_sha256"],
                    "model_name": "digits",
                    "needed_level": 1,
                    "signature": signature,
                    "subgraph_count": 1,
                    "offloaded_count": 2,
                    "operation_count": 3,
                    "parts": parts,
                    "versions": {"tvm": "0", "nnfarm": "0"},
                    "options": {},
                    **target,
                },
            }
            for target in spec["targets"]
        ]
        return {
            "signature": signature,
            "evaluation": {
                "sample_count": 2,
                "inputs_sha256": inputs,
                "expected_sha256": expected,
                "synthetic": True,
            },
            "artifacts": artifacts,
            "stage_durations_us": {"ingest": 5},
            "child_duration_us": 9,
        }

    def build(self, **request: Any) -> dict[str, Any]:
        """A compilation that has succeeded."""
        spec = self.claim(self.compile(**request)["id"])
        answer = self.job_call(spec, "complete", self.outcome(spec))
        assert answer.status_code == 204, answer.text
        return self.get(f"/v1/compilations/{spec['compilation_id']}")

    def attach(self, *devices: dict[str, Any], agent: str = "bench") -> list[dict[str, Any]]:
        """Be an agent that reports these devices, and no others."""
        answer = self.client.put(
            f"/internal/v1/agents/{agent}",
            json={"agent_name": agent, "devices": devices},
            headers=bearer(AGENT_TOKEN),
        )
        items: list[dict[str, Any]] = self.ok(answer)["items"]
        return items

    def lease(
        self, *serials: str, agent: str = "bench", benches: bool = False
    ) -> dict[str, Any] | None:
        """Be an agent that asks for work."""
        answer = self.client.post(
            "/internal/v1/leases",
            json={"agent_name": agent, "serials": serials, "takes_benches": benches},
            headers=bearer(AGENT_TOKEN),
        )
        return None if answer.status_code == 204 else self.ok(answer)

    def run_call(self, lease: dict[str, Any], call: str, **body: Any) -> httpx.Response:
        """One of an agent's later calls."""
        path = f"/internal/v1/runs/{lease['run_id']}/{call}"
        body = {"fence": lease["fence"], **body}
        return self.client.post(path, json=body, headers=bearer(lease["lease_token"]))

    def get(self, path: str) -> dict[str, Any]:
        """A resource that is there."""
        return self.ok(self.client.get(path))

    @staticmethod
    def ok(answer: httpx.Response) -> dict[str, Any]:
        """The body of a good answer."""
        assert answer.is_success, answer.text
        body: dict[str, Any] = answer.json()
        return body


def device(serial: str, level: int = 4, **changes: Any) -> dict[str, Any]:
    """A device as an agent describes it."""
    return {
        "serial": serial,
        "name": f"phone-{serial}",
        "model": "test phone",
        "abis": ["x86_64"],
        "sdk_level": 30,
        "feature_level": level,
        "simulated": True,
        **changes,
    }


def measurement() -> dict[str, Any]:
    """A measurement an agent could report."""
    latency = dict.fromkeys(
        ("min_us", "median_us", "mean_us", "p90_us", "p99_us", "max_us", "mad_us"), 10.0
    )
    return {
        "engine": "nnapi",
        "latency": {**latency, "count": 2, "simulated": True},
        "samples_us": [10.0, 10.0],
        "load_us": 1.0,
        "compile_us": 1.0,
        "first_run_us": 11.0,
        "peak_memory_bytes": 1000,
        "accuracy": {
            "sample_count": 2,
            "outputs": [],
            "max_abs_error": 0.0,
            "max_rel_error": 0.0,
        },
        "before": {},
        "after": {},
        "valid": True,
    }


def follow(farm: Farm, compilation_id: str, last_event_id: str = "") -> Iterator[dict[str, Any]]:
    """A compilation's events until the service ends the stream."""
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    path = f"/v1/compilations/{compilation_id}/events"
    with farm.client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        fields: dict[str, Any] = {}
        for line in answer.iter_lines():
            if not line and fields:
                yield {**fields, "data": json.loads(fields["data"])}
                fields = {}
            name, colon, value = line.partition(": ")
            if colon and name:
                fields[name] = value


@contextmanager
def serve(settings: Settings) -> Iterator[Farm]:
    """Run the service in a thread until the block ends."""
    app = create_app(settings)
    port = free_port()
    config = uvicorn.Config(app, port=port, log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started or not thread.is_alive())
        assert server.started, "the service did not start; its log says why"
        # No certificates are read for plain HTTP: that takes longer than most tests' calls.
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, timeout=20, verify=False) as client:
            yield Farm(settings, app.state.components, client)
    finally:
        server.should_exit = True
        thread.join()


def settings_for(folder: Path, redis_url: str, **changes: Any) -> Settings:
    """Settings for a test; SQLite and a local folder unless it says otherwise."""
    values = {
        "database_url": f"sqlite:///{folder}/test.db",
        "blob_url": f"file:{folder}/blobs",
        "redis_url": redis_url,
        "web_dir": folder / "web",
        "secret_key": "a key only tests use",
        "worker_token": WORKER_TOKEN,
        "agent_token": AGENT_TOKEN,
        "compiler_version": "test-compiler",
        "sweep_interval_s": 0.05,
        "long_poll_s": 0.0,
        **changes,
    }
    return Settings(**values)
