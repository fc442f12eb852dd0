from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from service.client import Client
from service.client.command import run
from service.contracts.jobs import JobStatus
from service.contracts.targets import Abi
from service.local.stack import Stack
from tests.stack.digits import DIGITS, finish, request_digits

Capture = pytest.CaptureFixture[str]


def tune(
    stack: Stack, capsys: Capture, *arguments: str, model: Path = DIGITS / "digits.onnx"
) -> dict[str, Any]:
    """`nnfarm tune` of a model, the digits by default; what it says as JSON."""
    capsys.readouterr()
    words = ["--url", stack.url, "--json", "tune", str(model), *arguments]
    assert run(words) == 0
    tuning: dict[str, Any] = json.loads(capsys.readouterr().out)["tuning"]
    return tuning


def test_what_was_tuned_shapes_the_next_build_and_runs(
    stack: Stack, client: Client, capsys: Capture
) -> None:
    before = request_digits(client, levels=(1,), exclude_ops=("Conv",))
    finish(client, before)
    tuning = tune(stack, capsys, "--time-budget", "20")
    assert (tuning["status"], tuning["abi"]) == ("succeeded", Abi.X86_64)
    assert tuning["records"], "no kernel was measured within the budget"
    for record in tuning["records"]:
        assert record["tried"] > 0
        if record["is_kept"]:
            assert record["after"]["median_us"] < record["before"]["median_us"]
    kept = {record["id"] for record in tuning["records"] if record["is_kept"]}
    again = request_digits(client, levels=(1,), exclude_ops=("Conv",))
    for result in finish(client, again):
        used = {one.record_id for one in result.artifact.manifest.tuned_kernels}
        assert used == kept
        assert result.run is not None
        assert result.run.measurement is not None
        assert result.run.measurement.valid
    assert (again.id == before.id) == (not kept)
    repeated = request_digits(client, levels=(1,), exclude_ops=("Conv",))
    assert (repeated.id, repeated.cached) == (again.id, True)
    assert run(["--url", stack.url, "show", tuning["id"]]) == 0
    assert "by the rules" in capsys.readouterr().out


def test_a_cancelled_tuning_is_over(stack: Stack, client: Client, capsys: Capture) -> None:
    started = tune(stack, capsys, "--time-budget", "60", "--no-wait")
    follower = client.tunings.follow(started["id"])
    next(event for event in follower if event.kind == "progress")
    assert run(["--url", stack.url, "cancel", started["id"]]) == 0
    assert "was cancelled" in capsys.readouterr().out
    assert [event.data["status"] for event in follower if event.kind == "status"] == ["failed"]
    assert client.tunings.get(started["id"]).status is JobStatus.FAILED


def test_kill_9_of_the_worker_loses_nothing_that_was_measured(
    stack: Stack, client: Client, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "pools.onnx"
    onnx.save(_pools(), path)
    started = tune(stack, capsys, "--time-budget", "15", "--no-wait", model=path)
    measured: list[str] = []
    for event in client.tunings.follow(started["id"]):
        if event.kind == "progress" and event.data["tuned"] and not measured:
            measured.append(event.data["tuned"]["signature"])
            worker = stack.processes["worker"].pid
            assert worker is not None
            os.kill(worker, signal.SIGKILL)
    done = client.tunings.get(started["id"])
    assert done.status is JobStatus.SUCCEEDED
    [first] = measured
    assert first in {record.signature for record in done.records}


def _pools() -> onnx.ModelProto:
    """Two kernels that no other test has."""
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], **window),
        helper.make_node("AveragePool", ["a"], ["y"], strides=[2, 2], **window),
    ]
    shapes = {"x": (1, 24, 26, 26), "y": (1, 24, 13, 13)}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items())
    graph = helper.make_graph(nodes, "pools", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
