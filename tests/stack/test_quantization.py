from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.client import Client, CompilationRequest
from service.client.command import run
from service.client.results import Thresholds
from service.contracts.targets import Abi
from service.local.stack import Stack
from tests.stack.digits import DIGITS, finish

Capture = pytest.CaptureFixture[str]


def quantize(stack: Stack, capsys: Capture, *arguments: str) -> tuple[int, dict[str, Any]]:
    """`nnfarm quantize` of the digits; its exit code and what it says as JSON."""
    model, dataset = str(DIGITS / "digits.onnx"), str(DIGITS / "digits_test.npz")
    capsys.readouterr()
    code = run(["--url", stack.url, "--json", "quantize", model, "--dataset", dataset, *arguments])
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, content


def test_digits_from_float_to_measured_int8_packages(
    stack: Stack, client: Client, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "digits.int8.onnx"
    arguments = ("--per-tensor", "--max-loss", "1%", "-o", str(file))
    code, content = quantize(stack, capsys, *arguments)
    assert (code, content["violations"], content["file"]) == (0, [], str(file))
    quantization = content["quantization"]
    assert quantization["cost"]["float_top1"] == 0.985
    assert quantization["cost"]["quantized_top1"] >= 0.975
    result = quantization["result"]
    assert result["size_bytes"] < quantization["model"]["size_bytes"] / 2
    uploaded = client.upload_model(file)
    assert (uploaded.id, uploaded.name) == (result["id"], "digits-int8")
    assert uploaded.derived_from is not None
    assert uploaded.derived_from.model_id == quantization["model"]["id"]

    request = CompilationRequest(
        model_id=uploaded.id,
        dataset_id=quantization["result_dataset_id"],
        levels=(1, 4),
        abis=(Abi.X86_64,),
        run_on="any",
    )
    results = finish(client, client.compile(request))
    assert Thresholds(min_agreement=0.99).violations(results) == []
    for item in results:
        manifest = item.artifact.manifest
        assert manifest.offloaded_count > manifest.operation_count * 0.8
        assert item.run is not None
        assert item.run.measurement is not None
        assert item.run.measurement.fallbacks == ()

    again = quantize(stack, capsys, *arguments)[1]["quantization"]
    assert (again["id"], again["result"]) == (quantization["id"], result)


def test_a_larger_loss_than_allowed_has_its_exit_code(stack: Stack, capsys: Capture) -> None:
    code, content = quantize(stack, capsys, "--method", "entropy", "--max-loss", "0")
    assert content["quantization"]["cost"]["loss"] > 0, "the example has become too easy"
    assert (code, len(content["violations"])) == (4, 1)


def test_a_quantization_that_fails_says_why(stack: Stack, capsys: Capture) -> None:
    code, content = quantize(stack, capsys, "--exclude", "nose")
    assert (code, content["error"]["code"]) == (1, "quantize.bad_option")
    assert "'nose'" in content["error"]["detail"]


def test_options_that_do_not_go_together_are_wrong_usage(stack: Stack, capsys: Capture) -> None:
    code, content = quantize(stack, capsys, "--weight", "uint8")
    assert (code, content["error"]["code"]) == (2, "quantize.bad_option")


def test_a_cancelled_job_is_over_and_the_worker_goes_on(
    stack: Stack, client: Client, capsys: Capture
) -> None:
    # Never asked for before, and long enough to be met in the worker's hands.
    arguments = ("--method", "entropy", "--exclude", "stem", "--no-wait")
    started = quantize(stack, capsys, *arguments)[1]
    follower = client.quantizations.follow(started["id"])
    next(event for event in follower if event.kind == "progress")
    assert run(["--url", stack.url, "cancel", started["id"]]) == 0
    assert "was cancelled" in capsys.readouterr().out
    assert [event.data["status"] for event in follower if event.kind == "status"] == ["failed"]
    assert run(["--url", stack.url, "show", started["id"]]) == 1
    assert "job.cancelled" in capsys.readouterr().err
    code, done = quantize(stack, capsys, "--method", "percentile")
    assert (code, done["quantization"]["status"]) == (0, "succeeded")
    assert run(["--url", stack.url, "cancel", done["quantization"]["id"]]) == 2
