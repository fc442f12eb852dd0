import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from fake_service import WORKER_TOKEN, FakeService

from service.contracts.quantization import QuantizeOptions
from workers.input_cache import InputCache
from workers.sandbox import Sandbox
from workers.service_client import ServiceClient
from workers.settings import WorkerSettings
from workers.tasks.job import JobWorker
from workers.tasks.quantize import QUANTIZATION

sys.path.insert(0, str(Path(__file__).parents[1] / "quantization"))
import networks


@pytest.fixture
def worker(service: FakeService, tmp_path: Path) -> Iterator[JobWorker]:
    settings = WorkerSettings.model_validate(
        {"url": service.url, "worker_token": WORKER_TOKEN, "worker_dir": tmp_path / "worker"}
    )
    client = ServiceClient(service.url, WORKER_TOKEN)
    sandbox = Sandbox([QUANTIZATION.entry], settings.limits)
    yield JobWorker(settings, client, sandbox, InputCache(tmp_path / "inputs"))
    sandbox.close()
    client.close()


def add_job(service: FakeService, **options: object) -> str:
    return service.add_quantization(
        networks.network().SerializeToString(),
        networks.SIGNATURE,
        networks.packed(image=networks.images()),
        QuantizeOptions.model_validate(options),
    )


def test_whole_job_in_the_sandbox(service: FakeService, worker: JobWorker) -> None:
    worker.work_on(QUANTIZATION, add_job(service))
    assert service.failures == []
    [outcome] = service.outcomes
    quantized = onnx.load_from_string(service.blobs[outcome.model_sha256])
    assert "QuantizeLinear" in {node.op_type for node in quantized.graph.node}
    assert service.events[-1].done == service.events[-1].total
    assert outcome.child_duration_us > 0


def test_refusal_of_the_child_is_reported(service: FakeService, worker: JobWorker) -> None:
    worker.work_on(QUANTIZATION, add_job(service, exclude_nodes=["nose"]))
    [failure] = service.failures
    assert failure.problem.code == "quantize.bad_option"
    assert failure.problem.details == {"nodes": ["nose"]}


def test_limits_and_crashes_have_codes_of_this_kind(
    service: FakeService, worker: JobWorker
) -> None:
    limits = worker.settings.limits.__class__(**{**vars(worker.settings.limits), "wall_s": 0.0})
    sandbox = Sandbox([QUANTIZATION.entry], limits)
    hasty = JobWorker(worker.settings, worker.service, sandbox, worker.inputs)
    hasty.work_on(QUANTIZATION, add_job(service))
    sandbox.close()
    [failure] = service.failures
    assert failure.problem.code == "quantize.limit_exceeded"
    assert failure.problem.detail.startswith("The quantizer needs more than")
