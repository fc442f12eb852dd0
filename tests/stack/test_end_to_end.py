from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from service.client import Client, CompilationRequest
from service.client.compiling import save_packages
from service.client.messages import Compilation, Event, Result
from service.client.results import Thresholds, notes_on
from service.client.terminal import Terminal
from service.client.transfer import check_package
from service.contracts.artifacts import OperationPlacement
from service.contracts.jobs import CompilationStatus, CompileOptions
from service.contracts.runs import RunStatus
from service.contracts.targets import Abi
from service.local.stack import Stack

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


def request_digits(
    client: Client, levels: tuple[int, ...] = (1, 4), exclude_ops: tuple[str, ...] = ()
) -> Compilation:
    """Ask for digits; another set of excluded operations makes a build of its own."""
    model = client.upload_model(DIGITS / "digits.onnx")
    dataset = client.upload_dataset(DIGITS / "digits_test.npz", model.id)
    return client.compile(
        CompilationRequest(
            model_id=model.id,
            dataset_id=dataset.id,
            levels=levels,
            abis=(Abi.X86_64,),
            options=CompileOptions(exclude_ops=exclude_ops),
            run_on="any",
        )
    )


def finish(client: Client, compilation: Compilation) -> list[Result]:
    """Follow to the end and demand that all went well."""
    for _ in client.follow(compilation.id):
        pass
    done = client.compilation(compilation.id)
    assert done.status is CompilationStatus.SUCCEEDED, done.error
    results = client.results(compilation.id)
    for result in results:
        assert result.run is not None
        assert result.run.status is RunStatus.SUCCEEDED, notes_on(result)
    return results


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
    assert again.status is CompilationStatus.SUCCEEDED
    finish(client, again)


def _compiling(event: Event) -> bool:
    return event.kind == "progress"


def _running(event: Event) -> bool:
    return event.kind == "run" and event.data["status"] == RunStatus.LEASED


@pytest.mark.parametrize(
    ("victim", "moment"),
    [
        ("worker", _compiling),
        ("service", _compiling),
        ("queue", _compiling),
        ("agent", _running),
        ("service", _running),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__.strip("_"),
)
def test_kill_9_in_the_middle_loses_nothing_and_counts_nothing_twice(
    stack: Stack, client: Client, victim: str, moment: Callable[[Event], bool]
) -> None:
    # A build of its own for each case: the excluded type does not occur in the model.
    compilation = request_digits(client, exclude_ops=(f"No{victim}{moment.__name__}",))
    killed = None
    for event in client.follow(compilation.id):
        if killed is None and moment(event):
            killed = stack.processes[victim].pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
    assert killed is not None, "the moment to kill never came"

    results = finish(client, compilation)

    assert stack.processes[victim].pid != killed, "started again"
    assert [result.artifact.feature_level for result in results] == [1, 4]
    runs = client.runs(compilation.id)
    assert len(runs) == 2
