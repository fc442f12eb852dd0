from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.client import Client, CompilationRequest
from service.client.command import run
from service.client.messages import Compilation
from service.contracts.jobs import CompileOptions, JobStatus
from service.contracts.targets import Abi
from service.local.stack import Stack
from tests.stack.digits import DIGITS, finish

Capture = pytest.CaptureFixture[str]


def tune(stack: Stack, capsys: Capture, model: Path, *arguments: str) -> dict[str, Any]:
    """`nnfarm tune` of a model; what it says as JSON."""
    capsys.readouterr()
    words = ["--url", stack.url, "--json", "tune", str(model), *arguments]
    assert run(words) == 0
    tuning: dict[str, Any] = json.loads(capsys.readouterr().out)["tuning"]
    return tuning


def test_what_was_tuned_shapes_the_next_build_and_runs(
    stack: Stack, client: Client, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "convolution.onnx"
    onnx.save(_convolution(), path)
    before = _request(client, path)
    finish(client, before)
    tuning = tune(stack, capsys, path, "--time-budget", "20")
    assert (tuning["status"], tuning["abi"]) == ("succeeded", Abi.X86_64)
    assert tuning["records"], "no kernel was measured within the budget"
    for record in tuning["records"]:
        assert record["tried"] > 0
        if record["is_kept"]:
            assert record["after"]["median_us"] < record["before"]["median_us"]
    kept = {record["id"] for record in tuning["records"] if record["is_kept"]}
    again = _request(client, path)
    for result in finish(client, again):
        used = {one.record_id for one in result.artifact.manifest.tuned_kernels}
        assert used == kept
        assert result.run is not None
        assert result.run.measurement is not None
        assert result.run.measurement.valid
    assert (again.id == before.id) == (not kept)
    repeated = _request(client, path)
    assert (repeated.id, repeated.cached) == (again.id, True)
    assert run(["--url", stack.url, "show", tuning["id"]]) == 0
    assert "by the rules" in capsys.readouterr().out


def test_a_cancelled_tuning_is_over(stack: Stack, client: Client, capsys: Capture) -> None:
    started = tune(stack, capsys, DIGITS / "digits.onnx", "--time-budget", "60", "--no-wait")
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
    started = tune(stack, capsys, path, "--time-budget", "15", "--no-wait")
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
    shapes = {"x": (1, 64, 80, 80), "y": (1, 64, 40, 40)}
    return _model(nodes, shapes, {})


def _convolution() -> onnx.ModelProto:
    """Some 50 microseconds: much shorter kernels are not tuned."""
    weight = np.random.default_rng(0).standard_normal((32, 32, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    return _model(nodes, {"x": (1, 32, 56, 56), "y": (1, 32, 28, 28)}, {"w": weight})


def _model(
    nodes: list[onnx.NodeProto],
    shapes: dict[str, tuple[int, ...]],
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items())
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "network", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _request(client: Client, path: Path) -> Compilation:
    """The convolution stays on the CPU, at one level."""
    return client.compile(
        CompilationRequest(
            model_id=client.upload_model(path).id,
            levels=(1,),
            abis=(Abi.X86_64,),
            options=CompileOptions(exclude_ops=("Conv",)),
            run_on="any",
        )
    )
