"""int8 with weights per channel at the levels that have no such tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.workers.backends.nnapi.quantized_models import inputs_of, quantized
from tests.workers.onnx_models import make_model, weights
from tests.workers.properties.phone import Phone


def _network() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "d"], ["e"], name="depthwise", group=6),
        helper.make_node("GlobalAveragePool", ["e"], ["g"], name="mean"),
        helper.make_node("Flatten", ["g"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "m"], ["y"], name="classes"),
    ]
    constants = {
        "w": weights(6, 4, 3, 3),
        "b": weights(6),
        "d": weights(6, 1, 3, 3, seed=2),
        "m": weights(6, 5, seed=3),
    }
    return make_model(nodes, {"x": [1, 4, 8, 8]}, ["y"], constants)


@pytest.mark.parametrize("level", [1, 2])
def test_an_early_level_computes_them_in_float_rounded_as_the_integers(
    level: int, tmp_path: Path, phone: Phone
) -> None:
    model = quantized(_network(), tmp_path, "int8", per_channel=True)
    answer = phone.compare(model, inputs_of(model, np.random.default_rng(9)), level)
    assert {"CONV_2D", "DEPTHWISE_CONV_2D", "FLOOR"} <= set(answer.lowered)
    assert "QUANTIZE" not in answer.lowered
    assert answer.outputs is not None
    # What NNAPI has no operation for there is at the borders.
    assert len(answer.documents) == 1
