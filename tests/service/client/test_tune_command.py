from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.client.messages import Model, ModelId, Tuning, TuningId
from service.client.results import ExitCode
from service.client.terminal import Terminal
from service.client.tuning import show_tuning
from service.contracts.errors import NnfarmError
from service.contracts.jobs import JobStatus
from service.contracts.kernels import KernelTiming
from service.contracts.tensors import ModelSignature
from service.contracts.tuning import TuneOptions

Nnfarm = Callable[..., int]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target", "phone"), "host, any or the id of a device"),
        (("--time-budget", "5"), "greater than or equal to 10"),
        (("--time-budget", "9999"), "less than or equal to 600"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_sent(
    nnfarm: Nnfarm,
    tmp_path: Path,
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"model")
    assert nnfarm("tune", model, *arguments) == 2
    assert words in capsys.readouterr().err


def tuning(status: JobStatus, **changes: object) -> Tuning:
    model = Model(
        id=ModelId("mod_1"),
        name="m",
        format="onnx",
        sha256="0",
        size_bytes=1,
        signature=ModelSignature(inputs=(), outputs=()),
        created_at="",
    )
    record = {
        "id": "ktr_1",
        "signature": "5",
        "kernel": "conv2d",
        "calls": 2,
        "tried": 9,
        "before": {"median_us": 100.0, "spread_us": 2.0},
    }
    faster = record | {"is_kept": True, "after": {"median_us": 80.0, "spread_us": 1.0}}
    plain = Tuning(
        id=TuningId("tun_1"), model=model, options=TuneOptions(), status=status, machine="here"
    )
    records = {"records": [faster, record | {"kernel": "softmax", "is_kept": False}]}
    return Tuning.model_validate(plain.model_dump() | records | changes)


def test_both_figures_of_each_kernel_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    times = {
        "before": KernelTiming(median_us=900.0, spread_us=9.0).model_dump(),
        "after": KernelTiming(median_us=860.0, spread_us=8.0).model_dump(),
    }
    assert show_tuning(Terminal(), tuning(JobStatus.SUCCEEDED, **times)) is ExitCode.OK
    shown = capsys.readouterr()
    for words in ("100.0 ± 2.0 us", "80.0 ± 1.0 us", "0.80", "ktr_1", "none near"):
        assert words in shown.out
    assert "1 of 2 kernels" in shown.err
    assert "900.0 ± 9.0 us before, 860.0 ± 8.0 us now" in shown.err


def test_a_tuning_that_failed_shows_what_it_has_found(capsys: pytest.CaptureFixture[str]) -> None:
    problem = NnfarmError("job.cancelled", "tun_1 was cancelled.").to_problem().model_dump()
    failed = tuning(JobStatus.FAILED, error=problem)
    assert show_tuning(Terminal(), failed) is ExitCode.FAILED
    shown = capsys.readouterr()
    assert "ktr_1" in shown.out
    assert "job.cancelled" in shown.err
