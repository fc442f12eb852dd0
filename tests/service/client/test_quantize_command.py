from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from service.client.quantizing import violation_of
from service.contracts.quantization import QuantizationCost

Nnfarm = Callable[..., int]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    model, dataset = tmp_path / "m.onnx", tmp_path / "d.npz"
    model.write_bytes(b"model")
    dataset.write_bytes(b"dataset")
    return model, dataset


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-loss", "much"), "neither 0 to 1 nor a percentage"),
        (("--max-loss", "1%%"), "neither"),
        (("--max-loss", "5"), "neither"),
        (("--max-loss", "nan"), "neither"),
        (("--method", "guess"), "guess"),
        (("--percentile", "20"), "greater than 50"),
        (("--no-wait", "-o", "out.onnx"), "not with --no-wait"),
        (("--no-wait", "--max-loss", "1%"), "not with --no-wait"),
    ],
)
def test_wrong_usage_is_said_before_anything_is_sent(
    nnfarm: Nnfarm,
    files: tuple[Path, Path],
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, dataset = files
    assert nnfarm("quantize", model, "--dataset", dataset, *arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("loss", "limit", "is_good"),
    [(0.01, 0.01, True), (0.0101, 0.01, False), (None, 1.0, False), (None, None, True)],
)
def test_loss_is_judged(loss: float | None, limit: float | None, is_good: bool) -> None:
    cost = QuantizationCost(
        sample_count=3,
        float_top1=None,
        quantized_top1=None,
        agreement=None,
        loss=loss,
        max_abs_error=0.0,
        max_rel_error=0.0,
    )
    assert (violation_of(cost, limit) is None) == is_good
