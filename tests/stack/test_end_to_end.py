from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.client import Client
from service.client.compiling import save_packages
from service.client.messages import Event
from service.client.results import Thresholds
from service.client.terminal import Terminal
from service.client.transfer import check_package
from service.contracts.artifacts import OperationPlacement
from service.contracts.jobs import JobStatus
from service.local.stack import Stack
from tests.stack.digits import (
    finish,
    is_compiling,
    is_running,
    kill_in_the_middle,
    request_digits,
)


def test_digits_from_model_to_measured_packages(client: Client, tmp_path: Path) -> None:
    compilation = request_digits(client)
    results = finish(client, compilation)

    assert [result.artifact.feature_level for result in results] == [1, 4]
    assert Thresholds(min_agreement=0.99, max_error=1e-3).violations(results) == []
    for result in results:
        assert result.run is not None
        measurement = result.run.measurement
        assert measurement is not None
        assert measurement.fallbacks == ()
        assert measurement.accuracy.sample_count == 200
        assert measurement.accuracy.top1 == measurement.accuracy.original_top1 == 0.985
        assert measurement.latency.simulated
        assert measurement.latency.count >= 20
        assert result.artifact.manifest.offloaded_count > 0

    paths = save_packages(client, Terminal(), results, tmp_path)
    assert len(paths) == 2
    for result in results:
        assert check_package(paths[result.artifact.id]) == result.artifact.manifest


def test_the_report_explains_every_operation(client: Client) -> None:
    compilation = request_digits(client, exclude_ops=("GlobalAveragePool",))
    finish(client, compilation)
    artifact = client.artifact(client.compilation(compilation.id).artifacts[0].id)
    operations = client.explanation(artifact).report.operations
    assert {operation.op_type for operation in operations} >= {"Conv", "Clip", "Add", "Gemm"}
    on_cpu = [o for o in operations if o.placement is OperationPlacement.CPU]
    assert "GlobalAveragePool" in {operation.op_type for operation in on_cpu}
    assert all(operation.rejection for operation in on_cpu)


def test_the_same_request_again_is_answered_from_what_is_built(client: Client) -> None:
    first = request_digits(client)
    finish(client, first)
    again = request_digits(client)
    assert again.cached
    assert again.status is JobStatus.SUCCEEDED
    finish(client, again)


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        ("worker", is_compiling),
        ("service", is_compiling),
        ("queue", is_compiling),
        ("agent", is_running),
        ("service", is_running),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_kill_9_in_the_middle_loses_nothing_and_counts_nothing_twice(
    stack: Stack, client: Client, victim: str, moment: Callable[[Event], bool]
) -> None:
    results = kill_in_the_middle(stack, client, victim, moment)
    assert [result.artifact.feature_level for result in results] == [1, 4]
