"""Cases of what levels 1 and 2 have only in other words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper

from tests.workers.onnx_models import make_model, single, weights

IMAGE = {"x": [1, 4, 8, 8]}
ONE_PIXEL, ONE_CHANNEL = {"x": [1, 6, 1, 1]}, {"x": [1, 1, 4, 3]}
"""Images in either layout: level 1 has no TRANSPOSE."""
Builder = Callable[[], onnx.ModelProto]


def _i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _gathered(indices: np.ndarray) -> onnx.ModelProto:
    """Behind tanh, which every level has."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node("Gather", ["t", "i"], ["y"], name="gather"),
    ]
    return make_model(nodes, {"x": [5, 6]}, ["y"], {"i": indices})


def _bilinear(mode: str, sizes: list[int]) -> onnx.ModelProto:
    """Between what every level has, and in NHWC as it stands."""
    resize = {"mode": "linear", "coordinate_transformation_mode": mode}
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node("Resize", ["t", "", "", "sizes"], ["r"], name="resize", **resize),
        helper.make_node("Tanh", ["r"], ["y"], name="again"),
    ]
    return make_model(nodes, ONE_CHANNEL, ["y"], {"sizes": np.array(sizes, np.int64)})


def _softmax_inside() -> onnx.ModelProto:
    """Over an inner axis, between what every level has."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node("Softmax", ["t"], ["s"], name="softmax", axis=1),
        helper.make_node("Tanh", ["s"], ["y"], name="again"),
    ]
    return make_model(nodes, {"x": [2, 5, 6]}, ["y"])


def _conv(*shape: int, **attributes: object) -> onnx.ModelProto:
    return single("Conv", IMAGE, {"w": weights(*shape)}, **attributes)


def _gelu_written_out() -> onnx.ModelProto:
    """As PyTorch's exporter writes it, half of x first."""
    nodes = [
        helper.make_node("Mul", ["x", "half"], ["h"], name="half"),
        helper.make_node("Div", ["x", "root"], ["s"], name="scale"),
        helper.make_node("Erf", ["s"], ["e"], name="erf"),
        helper.make_node("Add", ["one", "e"], ["a"], name="one_more"),
        helper.make_node("Mul", ["h", "a"], ["y"], name="product"),
    ]
    numbers = {"half": 0.5, "root": 1.4142135, "one": 1.0}
    return make_model(
        nodes, {"x": [4, 60]}, ["y"], {name: np.float32(n) for name, n in numbers.items()}
    )


def _standardized() -> onnx.ModelProto:
    """(x - mean) / sqrt(variance + epsilon), as exporters wrote it before opset 17."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], name="mean", axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["c"], name="centre"),
        helper.make_node("Pow", ["c", "two"], ["q"], name="squares"),
        helper.make_node("ReduceMean", ["q"], ["v"], name="variance", axes=[-1]),
        helper.make_node("Add", ["v", "epsilon"], ["w"], name="more"),
        helper.make_node("Sqrt", ["w"], ["s"], name="root"),
        helper.make_node("Div", ["c", "s"], ["y"], name="divide"),
    ]
    numbers = {"two": np.float32(2), "epsilon": np.float32(1e-5)}
    return make_model(nodes, {"x": [2, 3, 20]}, ["y"], numbers)


def _slice_of_channels() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m"], name="pool", kernel_shape=[1, 1]),
        helper.make_node("Slice", ["m", "b", "e", "a", "s"], ["c"], name="slice"),
        helper.make_node("MaxPool", ["c"], ["y"], name="last", kernel_shape=[1, 1]),
    ]
    bounds = {"b": _i64(-1), "e": _i64(-5), "a": _i64(1), "s": _i64(-2)}
    return make_model(nodes, ONE_PIXEL, ["y"], bounds)


def _twice_as_large(frame: str, rounding: str, factor: int) -> onnx.ModelProto:
    attributes = {"coordinate_transformation_mode": frame, "nearest_mode": rounding}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m"], name="pool", kernel_shape=[1, 1]),
        helper.make_node("Resize", ["m", "", "f"], ["r"], name="resize", **attributes),
        helper.make_node("MaxPool", ["r"], ["y"], name="last", kernel_shape=[2, 2]),
    ]
    return make_model(
        nodes, ONE_CHANNEL, ["y"], {"f": np.array([1, 1, factor, factor], np.float32)}
    )


_APART = {"dilations": [5, 4], "pads": [5, 3, 4, 4]}


EARLY: dict[str, tuple[int, Builder]] = {
    "mean": (1, lambda: single("ReduceMean", {"x": [2, 3, 20]}, axes=[2])),
    "mean_of_rows": (1, lambda: single("ReduceMean", {"x": [2, 3, 20]}, axes=[1])),
    "hard_sigmoid": (1, lambda: single("HardSigmoid", {"x": [2, 50]}, alpha=0.3)),
    "clip_below": (1, lambda: single("Max", {"x": [2, 50]}, {"c": np.float32(-0.4)})),
    "clip_above": (1, lambda: single("Min", {"x": [2, 50]}, {"c": np.float32(0.7)})),
    # At level 1 adding the bound would leave nothing of the numbers below it.
    "clip_far_above": (3, lambda: single("Min", {"x": [2, 50]}, {"c": np.float32(1e12)})),
    "square": (1, lambda: single("Pow", {"x": [2, 7]}, {"e": np.float32(2)})),
    "cube": (1, lambda: single("Pow", {"x": [2, 7]}, {"e": np.float32(3)})),
    "gelu_written_out": (1, _gelu_written_out),
    "standardized": (1, _standardized),
    "softmax_inside": (1, _softmax_inside),
    "exp_of_anything": (3, lambda: single("Exp", {"x": [2, 7]})),
    "slice_of_channels": (1, _slice_of_channels),
    "gather_of_neighbours": (1, lambda: _gathered(_i64(-3, -2))),
    "gather_of_one": (1, lambda: _gathered(np.array(4, np.int64))),
    "nearest": (1, lambda: _twice_as_large("asymmetric", "floor", 2)),
    "bilinear_half_pixel": (1, lambda: _bilinear("half_pixel", [1, 1, 8, 7])),
    "bilinear_smaller": (1, lambda: _bilinear("pytorch_half_pixel", [1, 1, 3, 2])),
    "bilinear_corners": (1, lambda: _bilinear("align_corners", [1, 1, 7, 5])),
    "nearest_half_pixel": (1, lambda: _twice_as_large("half_pixel", "round_prefer_floor", 3)),
    "conv_grouped": (1, lambda: single("Conv", ONE_PIXEL, {"w": weights(4, 3, 1, 1)}, group=2)),
    "conv_far_apart": (
        1,
        lambda: single("Conv", ONE_CHANNEL, {"w": weights(1, 1, 3, 3)}, **_APART),
    ),
    "conv_depthwise_far_apart": (2, lambda: _conv(4, 1, 3, 2, group=4, **_APART)),
}
"""What levels 1 and 2 have only in other words."""
