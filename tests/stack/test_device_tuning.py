"""Kernels tuned on a virtual phone: built by the worker, measured there by the runner."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from service.client import Client, CompilationRequest
from service.client.command import run
from service.contracts.jobs import CompileOptions
from service.contracts.targets import Abi
from service.local.stack import Stack
from tests.stack.digits import finish

Capture = pytest.CaptureFixture[str]


def test_kernels_are_measured_on_a_virtual_phone_and_shown_as_simulated(
    stack: Stack, client: Client, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "convolution.onnx"
    onnx.save(_convolution(), path)
    phone = client.devices()[0]
    words = ["--url", stack.url, "--json", "tune", str(path), "--time-budget", "20"]
    capsys.readouterr()
    assert run([*words, "--target", phone.id]) == 0
    tuning = json.loads(capsys.readouterr().out)["tuning"]
    assert (tuning["status"], tuning["abi"], tuning["error"]) == ("succeeded", Abi.X86_64, None)
    assert tuning["device"] == {
        "id": phone.id,
        "name": phone.description.name,
        "simulated": True,
    }
    assert tuning["records"], "no kernel was measured within the budget"
    for record in tuning["records"]:
        assert record["tried"] > 0
        assert record["before"]["median_us"] > 0
        assert (record["simulated"], record["is_kept"]) == (True, False)
    assert run(["--url", stack.url, "show", tuning["id"]]) == 0
    shown = capsys.readouterr()
    assert "simulated" in shown.out
    assert "no compilation uses these schedules" in shown.err
    built = client.compile(
        CompilationRequest(
            model_id=client.upload_model(path).id,
            levels=(1,),
            abis=(Abi.X86_64,),
            options=CompileOptions(exclude_ops=("Conv",)),
            run_on="any",
        )
    )
    for result in finish(client, built):
        assert result.artifact.manifest.tuned_kernels == ()


def _convolution() -> onnx.ModelProto:
    """A kernel that no other test has."""
    weight = np.random.default_rng(0).standard_normal((24, 24, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    shape = (1, 24, 40, 40)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy")
    graph = helper.make_graph([node], "network", [x], [y], [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
