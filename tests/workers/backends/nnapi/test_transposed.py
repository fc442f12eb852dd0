"""Transposed convolutions against ONNX Runtime: by levels, alone and in a network, in integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.workers.backends.nnapi.quantized_models import inputs_of, quantized
from tests.workers.onnx_models import make_model, single, weights
from tests.workers.properties.phone import Phone

IMAGE = {"x": [2, 4, 5, 7]}


def _alone(*shape: int, channels: int = 4, **attributes: object) -> onnx.ModelProto:
    return single("ConvTranspose", {"x": [2, channels, 5, 7]}, {"w": weights(*shape)}, **attributes)


def _decoder() -> onnx.ModelProto:
    """Two of them, and what stands before, between and behind."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["0"]),
        helper.make_node("ConvTranspose", ["0", "w1", "b1"], ["1"], strides=[2, 2]),
        helper.make_node("LeakyRelu", ["1"], ["2"], alpha=0.1),
        helper.make_node("Mul", ["2", "s"], ["3"]),
        helper.make_node("ConvTranspose", ["3", "w2"], ["4"], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Relu", ["4"], ["5"]),
        helper.make_node("MaxPool", ["5"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    constants = {
        "w0": weights(4, 4, 1, 1), "w1": weights(4, 6, 2, 2), "b1": weights(6),
        "s": weights(6, 1, 1), "w2": weights(6, 2, 4, 4),
    }  # fmt: skip
    return make_model(nodes, IMAGE, ["y"], constants)


MODELS = {
    "bias": single(
        "ConvTranspose", IMAGE, {"w": weights(4, 6, 3, 3), "b": weights(6)},
        strides=[2, 2], pads=[1] * 4, output_padding=[1, 1],
    ),
    "groups": _alone(4, 3, 3, 3, group=2),
    "dilation": _alone(4, 3, 3, 3, dilations=[2, 1], strides=[2, 2]),
    "window smaller than the step": _alone(4, 3, 2, 2, strides=[3, 3]),
    "more added than cut off": _alone(4, 3, 3, 3, strides=[2, 2], output_padding=[1, 1]),
    "edges not read": _alone(4, 3, 3, 3, strides=[2, 2], pads=[2, 3, 3, 2]),
    "uneven steps": _alone(4, 3, 3, 3, strides=[1, 2]),
    "a window a channel": _alone(
        18, 1, 4, 4, channels=18, strides=[2, 2], pads=[1] * 4, group=18
    ),
    "one channel": single(
        "ConvTranspose", {"x": [1, 1, 3, 4]}, {"w": weights(1, 1, 2, 2), "b": weights(1)},
        strides=[2, 2],
    ),
    "decoder": _decoder(),
}  # fmt: skip


@pytest.mark.parametrize("level", [1, 2, 3, 7])
@pytest.mark.parametrize("name", MODELS)
def test_every_level_has_it(name: str, level: int, phone: Phone) -> None:
    data = inputs_of(MODELS[name], np.random.default_rng(1))
    answer = phone.compare(MODELS[name], data, level)
    assert answer.outputs is not None
    assert answer.rejected == ()
    if level >= 3:  # two around the whole, none inside
        assert answer.lowered.count("TRANSPOSE") <= 2


@pytest.mark.parametrize(
    ("dtype", "per_channel", "level"), [("uint8", False, 1), ("uint8", False, 3), ("int8", True, 7)]
)
def test_integers_stay_integers(
    dtype: str, per_channel: bool, level: int, phone: Phone, tmp_path: Path
) -> None:
    model = quantized(_decoder(), tmp_path, dtype, per_channel)
    answer = phone.compare(model, inputs_of(_decoder(), np.random.default_rng(1)), level)
    assert answer.outputs is not None
    wanted = ("CONV_2D", 3) if level < 3 else ("TRANSPOSE_CONV_2D", 2)
    assert answer.lowered.count(wanted[0]) == wanted[1]
    assert answer.lowered.count("DEQUANTIZE") <= 3  # before LeakyRelu, behind it and at the end
