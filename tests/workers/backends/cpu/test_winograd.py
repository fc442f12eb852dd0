"""Winograd's filtering: its matrices, its accuracy, and which convolutions take it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm

from service.contracts.jobs import ModelFormat
from tests.workers.backends.cpu.conftest import Check
from tests.workers.backends.cpu.models import Array, single_node
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.operators.cook_toom import transforms
from workers.pipeline.stages.ingest import ingest


@pytest.mark.parametrize("results", [2, 4])
def test_the_matrices_make_a_sliding_window(results: int) -> None:
    random = np.random.default_rng(3)
    window, image = random.standard_normal(3), random.standard_normal(results + 2)
    matrices = transforms(results)
    found = matrices.result @ ((matrices.window @ window) * (matrices.image @ image))
    np.testing.assert_allclose(found, np.correlate(image, window, "valid"), rtol=0, atol=1e-13)


def weight(outputs: int, inputs: int, size: int = 3) -> Array:
    values: Array = np.random.default_rng(1).standard_normal((outputs, inputs, size, size))
    return values.astype(np.float32)


def test_it_loses_little_accuracy(check: Check) -> None:
    """2304 terms a sum; the error is of the largest output."""
    model = single_node("Conv", (1, 256, 16, 16), weight(64, 256), pads=[1] * 4)
    assert check(model, 1e-5) == ()


@pytest.mark.parametrize(
    ("image", "shape", "attributes", "is_taken"),
    [
        ((1, 64, 28, 28), (64, 64, 3), {}, True),
        ((1, 64, 28, 28), (64, 64, 3), {"strides": [2, 2]}, False),
        ((1, 64, 28, 28), (64, 64, 3), {"dilations": [2, 2]}, False),
        ((1, 64, 28, 28), (64, 32, 3), {"group": 2}, False),
        ((1, 64, 28, 28), (64, 64, 5), {}, False),
        ((1, 3, 28, 28), (64, 3, 3), {}, False),
        ((1, 640, 7, 7), (640, 640, 3), {}, False),
    ],
    ids=["plain", "stride", "dilation", "groups", "5x5", "few-channels", "large-weights"],
)
def test_which_convolutions_take_it(
    tmp_path: Path, target: tvm.target.Target, image: tuple[int, ...], shape: tuple[int, int, int],
    attributes: dict[str, object], is_taken: bool,
) -> None:  # fmt: skip
    path = tmp_path / "model.onnx"
    onnx.save(single_node("Conv", image, weight(*shape), **attributes), path)
    lowered, _ = lower_for_cpu(ingest(path, ModelFormat.ONNX, {}).graph.module, target)
    names = [variable.name_hint for variable in lowered.functions]
    assert any("winograd_product" in name for name in names) == is_taken
