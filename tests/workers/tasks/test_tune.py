from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_service import WORKER_TOKEN, FakeService

from service.contracts.jobs import Stage
from service.contracts.tuning import KernelKey
from tests.workers.tuning import networks
from workers.input_cache import InputCache
from workers.sandbox import Sandbox
from workers.service_client import ServiceClient
from workers.settings import WorkerSettings
from workers.tasks.job import JobWorker
from workers.tasks.tune import TUNING

BUDGET_S = 12.0
_LATE_S = 20.0  # one build that is under way, on a machine with other work


@pytest.fixture
def worker(service: FakeService, tmp_path: Path) -> Iterator[JobWorker]:
    settings = WorkerSettings.model_validate(
        {"url": service.url, "worker_token": WORKER_TOKEN, "worker_dir": tmp_path / "worker"}
    )
    client = ServiceClient(service.url, WORKER_TOKEN)
    sandbox = Sandbox([TUNING.entry], settings.limits)
    yield JobWorker(settings, client, sandbox, InputCache(tmp_path / "inputs"))
    sandbox.close()
    client.close()


def test_whole_job_in_the_sandbox(service: FakeService, worker: JobWorker) -> None:
    model = networks.depthwise(channels=20).SerializeToString()
    worker.work_on(TUNING, service.add_tuning(model, BUDGET_S))
    assert service.failures == []
    [outcome] = service.outcomes
    found = [event.tuned for event in service.events if event.tuned is not None]
    assert found, "no kernel was measured within the budget"
    assert (outcome.tuned_count, outcome.known_count) == (len(found), 0)
    spent_us = sum(outcome.stage_durations_us[stage] for stage in (Stage.TUNE, Stage.MEASURE))
    assert spent_us < (BUDGET_S + _LATE_S) * 1e6
    assert [service.events[-1].done, service.events[-1].stage] == [
        service.events[-1].total, Stage.MEASURE,
    ]  # fmt: skip
    for kernel in found:
        assert kernel.before.median_us > 0
        assert kernel.tried > 0
        if kernel.trace is not None:
            assert kernel.after is not None
            assert kernel.after.median_us < kernel.before.median_us
            assert json.loads(kernel.trace)


def test_settled_kernels_are_not_tuned_again(service: FakeService, worker: JobWorker) -> None:
    model = networks.depthwise(channels=20)
    known = tuple(KernelKey(abi=abi, signature=one) for abi, one in networks.signatures(model))
    worker.work_on(TUNING, service.add_tuning(model.SerializeToString(), BUDGET_S, known))
    [outcome] = service.outcomes
    assert (outcome.known_count, outcome.tuned_count) == (outcome.kernel_count, 0)
    assert [event.tuned for event in service.events if event.tuned] == []


def test_a_model_that_cannot_be_read_is_refused(service: FakeService, worker: JobWorker) -> None:
    worker.work_on(TUNING, service.add_tuning(b"no model", BUDGET_S))
    [failure] = service.failures
    assert failure.problem.code == "model.unreadable"


def test_crashes_and_limits_have_codes_of_this_kind(
    service: FakeService, worker: JobWorker
) -> None:
    limits = worker.settings.limits.__class__(**{**vars(worker.settings.limits), "wall_s": 0.0})
    sandbox = Sandbox([TUNING.entry], limits)
    hasty = JobWorker(worker.settings, worker.service, sandbox, worker.inputs)
    hasty.work_on(TUNING, service.add_tuning(b"", BUDGET_S))
    sandbox.close()
    [failure] = service.failures
    assert failure.problem.code == "tune.limit_exceeded"
