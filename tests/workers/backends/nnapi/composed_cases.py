"""Cases of operations that came after level 1's, and of those composed from several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.workers.onnx_models import make_model, single, weights

IMAGE = {"x": [1, 4, 8, 8]}
Builder = Callable[[], onnx.ModelProto]


def _i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _with_exp(op: str, constants: dict[str, np.ndarray], **attributes: object) -> onnx.ModelProto:
    """exp, then what alone would not be worth a call."""
    nodes = [
        helper.make_node("Exp", ["x"], ["t"], name="exp"),
        helper.make_node(op, ["t", *constants], ["y"], name=op.lower(), **attributes),
    ]
    return make_model(nodes, {"x": [4, 5]}, ["y"], constants)


def _selected() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Greater", ["x", "z"], ["c"], name="greater"),
        helper.make_node("Where", ["c", "x", "low"], ["y"], name="where"),
    ]
    return make_model(nodes, {"x": [2, 3], "z": [2, 3]}, ["y"], {"low": np.float32(-9)})


def _logic() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Less", ["x", "z"], ["a"], name="less"),
        helper.make_node("GreaterOrEqual", ["x", "z"], ["b"], name="greater_or_equal"),
        helper.make_node("Not", ["b"], ["c"], name="not"),
        helper.make_node("And", ["a", "c"], ["d"], name="and"),
        helper.make_node("Where", ["d", "x", "z"], ["y"], name="where"),
    ]
    return make_model(nodes, {"x": [2, 3], "z": [2, 3]}, ["y"])


def _shuffle() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Exp", ["x"], ["t"], name="exp"),
        helper.make_node("Reshape", ["t", "s"], ["u"], name="apart"),
        helper.make_node("Transpose", ["u"], ["v"], name="swap", perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["v", "r"], ["y"], name="together"),
    ]
    shapes = {"s": _i64(1, 2, 2, 8, 8), "r": _i64(1, 4, 8, 8)}
    return make_model(nodes, IMAGE, ["y"], shapes)


def _head() -> onnx.ModelProto:
    """[1, anchors * values, h, w] as [1, anchors, h, w, values], element by element, and flat."""
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"], name="apart"),
        helper.make_node("Transpose", ["a"], ["b"], name="last", perm=[0, 1, 3, 4, 2]),
        helper.make_node("Sigmoid", ["b"], ["c"], name="sigmoid"),
        helper.make_node("Mul", ["c", "k"], ["d"], name="scale"),
        helper.make_node("Reshape", ["d", "r"], ["y"], name="flat"),
    ]
    constants = {"s": _i64(1, 2, 5, 4, 4), "r": _i64(1, -1, 5), "k": weights(1, 2, 4, 4, 1)}
    return make_model(nodes, {"x": [1, 10, 4, 4]}, ["y"], constants)


NORMS = {"s": weights(8), "b": weights(8, seed=1)}
CHANNELS = {"s": weights(4), "b": weights(4, seed=1)}

COMPOSED: dict[str, tuple[int, Builder]] = {
    "where": (3, _selected),
    "logic": (3, _logic),
    "gather": (3, lambda: _with_exp("Gather", {"i": _i64(2, 0, -1)}, axis=1)),
    "gather_one": (3, lambda: _with_exp("Gather", {"i": np.array(-2, np.int64)}, axis=0)),
    "tile": (3, lambda: _with_exp("Tile", {"r": _i64(2, 3)})),
    "expand": (3, lambda: _with_exp("Expand", {"r": _i64(2, 4, 5)})),
    "prelu": (3, lambda: single("PRelu", IMAGE, {"s": weights(4, 1, 1)})),
    "leaky_relu": (1, lambda: single("LeakyRelu", {"x": [2, 7]}, alpha=0.2)),
    "sin": (3, lambda: single("Sin", {"x": [2, 7]})),
    "ceil": (1, lambda: single("Ceil", {"x": [2, 7]})),
    "sign": (1, lambda: single("Sign", {"x": [2, 7]})),
    "erf": (3, lambda: single("Erf", {"x": [4, 60]})),
    "gelu": (3, lambda: single("Gelu", {"x": [4, 60]}, opset=20)),
    "gelu_tanh": (1, lambda: single("Gelu", {"x": [4, 60]}, opset=20, approximate="tanh")),
    "layer_norm": (3, lambda: single("LayerNormalization", {"x": [2, 3, 8]}, NORMS)),
    "instance_norm": (3, lambda: single("InstanceNormalization", IMAGE, CHANNELS)),
    "pixel_shuffle": (3, lambda: _with_image("DepthToSpace", blocksize=2, mode="CRD")),
    "depth_to_space": (3, lambda: _with_image("DepthToSpace", blocksize=2)),
    "space_to_depth": (3, lambda: _with_image("SpaceToDepth", blocksize=2)),
    "channel_shuffle": (3, _shuffle),
    "transposed_conv": (
        3,
        lambda: single(
            "ConvTranspose",
            IMAGE,
            {"w": weights(4, 6, 3, 3), "b": weights(6)},
            strides=[2, 2],
            pads=[1, 1, 1, 1],
            output_padding=[1, 1],
        ),
    ),
    "mirror_pad": (
        7,
        lambda: single("Pad", {"x": [2, 5, 4]}, {"p": _i64(0, 1, 1, 0, 2, 2)}, mode="reflect"),
    ),
    "conv_1d": (2, lambda: _sequence("Conv", {"w": weights(6, 4, 3), "b": weights(6)})),
    "max_pool_1d": (2, lambda: _sequence("MaxPool", {}, kernel_shape=[3], strides=[2])),
    "detection_head": (2, _head),
    "argmax": (
        3,
        lambda: single(
            "ArgMax", {"x": [3, 5]}, output_types={"y": TensorProto.INT64}, axis=1, keepdims=1
        ),
    ),
}
"""Least level and model, by name."""


def _sequence(op: str, constants: dict[str, np.ndarray], **attributes: object) -> onnx.ModelProto:
    return single(op, {"x": [2, 4, 17]}, constants, **attributes)


def _with_image(op: str, **attributes: object) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Exp", ["x"], ["t"], name="exp"),
        helper.make_node(op, ["t"], ["y"], name=op.lower(), **attributes),
    ]
    return make_model(nodes, IMAGE, ["y"])
