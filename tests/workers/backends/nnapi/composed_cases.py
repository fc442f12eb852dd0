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


def _after_tanh(
    op: str, shape: list[int], constants: dict[str, np.ndarray] | None = None, **attributes: object
) -> onnx.ModelProto:
    """tanh, which every level has, then what alone would not be worth a call."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node(op, ["t", *(constants or {})], ["y"], name=op.lower(), **attributes),
    ]
    return make_model(nodes, {"x": shape}, ["y"], constants)


def _sliced(begin: int, end: int, step: int) -> onnx.ModelProto:
    bounds = {"b": _i64(begin), "e": _i64(end), "a": _i64(1), "s": _i64(step)}
    return _after_tanh("Slice", [2, 5, 6], bounds)


def _centred() -> onnx.ModelProto:
    """Between the two a number without axes."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], name="mean", keepdims=0),
        helper.make_node("Mul", ["m", "two"], ["d"], name="double"),
        helper.make_node("Sub", ["x", "d"], ["y"], name="sub"),
    ]
    return make_model(nodes, {"x": [3, 5]}, ["y"], {"two": np.float32(2)})


def _xor() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Greater", ["x", "z"], ["a"], name="greater"),
        helper.make_node("Greater", ["x", "k"], ["b"], name="above"),
        helper.make_node("Xor", ["a", "b"], ["c"], name="xor"),
        helper.make_node("Where", ["c", "x", "z"], ["y"], name="where"),
    ]
    return make_model(nodes, {"x": [2, 3], "z": [2, 3]}, ["y"], {"k": np.float32(0.1)})


def _top_k(axis: int, largest: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["y", "i"], name="top", axis=axis, largest=largest)
    ]
    kinds = {"i": TensorProto.INT64}
    return make_model(nodes, {"x": [2, 5, 6]}, ["y", "i"], {"k": _i64(3)}, output_types=kinds)


def _matmul(left: list[int], right: list[int]) -> onnx.ModelProto:
    return single("MatMul", {"x": left, "z": right})


def _weight_first(weight: tuple[int, ...], data: list[int]) -> onnx.ModelProto:
    return single("MatMul", {"x": data}, {"w": weights(*weight)}, args=["w", "x"])


PRODUCTS: dict[str, tuple[int, Builder]] = {
    "matmul_2x2": (2, lambda: _matmul([3, 16], [16, 4])),
    "matmul_3x3": (2, lambda: _matmul([2, 3, 16], [2, 16, 4])),
    "matmul_4x4": (2, lambda: _matmul([1, 2, 3, 16], [1, 2, 16, 4])),
    "matmul_3x2": (2, lambda: _matmul([2, 3, 16], [16, 4])),
    "matmul_2x3": (2, lambda: _matmul([3, 16], [2, 16, 4])),
    "matmul_4x3": (2, lambda: _matmul([2, 2, 3, 16], [2, 16, 4])),
    "matmul_spread": (2, lambda: _matmul([2, 1, 3, 16], [1, 3, 16, 4])),
    "matmul_long": (3, lambda: _matmul([66, 3, 8], [66, 8, 4])),
    "matmul_long_spread": (3, lambda: _matmul([2, 33, 3, 8], [33, 8, 1])),
    "matmul_vector": (1, lambda: _matmul([3, 16], [16])),
    "vector_matmul": (2, lambda: _matmul([16], [16, 4])),
    "matmul_constant_stack": (
        1,
        lambda: single("MatMul", {"x": [2, 3, 8]}, {"w": weights(2, 8, 4)}),
    ),
    "constant_matmul": (2, lambda: _weight_first((3, 8), [8, 4])),
    "constant_matmul_stack": (2, lambda: _weight_first((3, 8), [2, 8, 4])),
    "cumsum": (1, lambda: single("CumSum", {"x": [3, 7]}, {"a": np.array(1, np.int64)})),
    "cumsum_axis": (
        2,
        lambda: single("CumSum", {"x": [3, 7, 2]}, {"a": np.array(1, np.int64)}, exclusive=1),
    ),
}

SELECTED: dict[str, tuple[int, Builder]] = {
    "top_k": (3, lambda: _top_k(-1, 1)),
    "top_k_least": (3, lambda: _top_k(-1, 0)),
    "top_k_inner_axis": (3, lambda: _top_k(1, 1)),
    "reverse": (2, lambda: _sliced(-1, -99, -1)),
    "slice_backwards": (2, lambda: _sliced(-2, 0, -2)),
    "xor": (3, _xor),
    "triangle": (3, lambda: single("Trilu", {"x": [4, 5]}, {"k": np.array(1, np.int64)})),
    "shrink": (3, lambda: single("Shrink", {"x": [2, 50]}, lambd=0.5, bias=0.5)),
    "round": (3, lambda: _halves("Round")),
    "cos": (3, lambda: single("Cos", {"x": [2, 7]})),
    "sub": (1, lambda: single("Sub", {"x": [2, 7], "z": [2, 7]})),
    "divide_by_constant": (1, lambda: single("Div", {"x": [2, 7]}, {"c": weights(7)})),
    "selu": (3, lambda: single("Selu", {"x": [2, 40]})),
    "softplus": (3, lambda: single("Softplus", {"x": [2, 40]})),
    "remainder": (2, lambda: single("Mod", {"x": [2, 40]}, {"z": weights(40)}, fmod=1)),
    "hard_swish": (1, lambda: single("HardSwish", {"x": [2, 40]})),
    "sum": (1, lambda: single("ReduceSum", IMAGE, {"a": _i64(2, 3)})),
    "without_axes": (1, _centred),
    "sum_of_squares": (1, lambda: single("ReduceSumSquare", {"x": [2, 3, 4]}, axes=[1])),
}


def _halves(op: str) -> onnx.ModelProto:
    """Numbers whose fraction is a half, exactly, among them."""
    constants = {"h": np.arange(-4, 4, 0.5, dtype=np.float32)}
    nodes = [
        helper.make_node("Floor", ["x"], ["f"], name="floor"),
        helper.make_node("Add", ["f", "h"], ["a"], name="add"),
        helper.make_node(op, ["a"], ["y"], name=op.lower()),
    ]
    return make_model(nodes, {"x": [3, 16]}, ["y"], constants)


def _weighted(op: str, *shape: int, **attributes: object) -> Builder:
    return lambda: single(op, IMAGE, {"w": weights(*shape)}, **attributes)


def _between_pools(op: str, shape: list[int], **attributes: object) -> onnx.ModelProto:
    """Where the graph is in NHWC."""
    kernel = {"kernel_shape": [1, 1]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m"], name="first", **kernel),
        helper.make_node(op, ["m"], ["d"], name=op.lower(), **attributes),
        helper.make_node("MaxPool", ["d"], ["y"], name="last", **kernel),
    ]
    return make_model(nodes, {"x": shape}, ["y"])


def _local_response(shape: list[int], kernel: list[int]) -> onnx.ModelProto:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["m"], name="pool", kernel_shape=kernel),
        helper.make_node("LRN", ["m"], ["y"], name="lrn", size=5, alpha=0.3, beta=0.6, bias=1.5),
    ]
    return make_model(nodes, {"x": shape}, ["y"])


BORDERS = {"p": _i64(0, 1, 2, 0, 0, 1)}
WINDOWS: dict[str, tuple[int, Builder]] = {
    "max_pool_dilated": (
        3,
        lambda: single(
            "MaxPool",
            IMAGE,
            kernel_shape=[3, 2],
            dilations=[2, 3],
            strides=[2, 1],
            pads=[1, 1, 0, 1],
            ceil_mode=1,
        ),
    ),
    "average_pool_dilated": (
        3,
        lambda: single("AveragePool", IMAGE, kernel_shape=[2, 3], dilations=[2, 2], opset=19),
    ),
    "average_pool_padded": (
        2,
        lambda: single(
            "AveragePool",
            IMAGE,
            kernel_shape=[3, 3],
            pads=[1] * 4,
            strides=[2, 2],
            ceil_mode=1,
            count_include_pad=1,
            opset=19,
        ),
    ),
    # A second window would begin in the padding: there is none.
    "average_pool_beyond": (
        2,
        lambda: single(
            "AveragePool",
            {"x": [1, 1, 2, 1]},
            kernel_shape=[2, 1],
            pads=[0, 0, 1, 0],
            strides=[2, 1],
            ceil_mode=1,
            count_include_pad=1,
        ),
    ),
    "pad_edge": (3, lambda: _after_tanh("Pad", [2, 3, 4], BORDERS, mode="edge")),
    "pad_reflect": (3, lambda: _after_tanh("Pad", [2, 3, 4], BORDERS, mode="reflect")),
    "local_response": (1, lambda: _local_response([2, 7, 1, 1], [1, 1])),
    "local_response_image": (1, lambda: _local_response([1, 1, 4, 5], [2, 2])),
    "blocks_to_space": (1, lambda: _between_pools("DepthToSpace", [2, 4, 1, 1], blocksize=2)),
    "space_to_blocks": (1, lambda: _between_pools("SpaceToDepth", [2, 1, 2, 2], blocksize=2)),
    "average_with_padding": (
        2,
        lambda: single(
            "AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1
        ),
    ),
    "conv_dilated": (
        1,
        lambda: single("Conv", {"x": [1, 1, 8, 8]}, {"w": weights(1, 1, 3, 3)}, dilations=[2, 1]),
    ),
    "conv_grouped_dilated": (
        1,
        lambda: single(
            "Conv",
            {"x": [1, 4, 1, 1]},
            {"w": weights(6, 2, 2, 2)},
            **{"dilations": [2, 2], "pads": [1, 1, 1, 1], "group": 2},
        ),
    ),
}

NORMS = {"s": weights(8), "b": weights(8, seed=1)}
CHANNELS = {"s": weights(4), "b": weights(4, seed=1)}

COMPOSED: dict[str, tuple[int, Builder]] = {
    **PRODUCTS,
    **SELECTED,
    **WINDOWS,
    "where": (3, _selected),
    "logic": (3, _logic),
    "gather": (3, lambda: _with_exp("Gather", {"i": _i64(2, 0, -1)}, axis=1)),
    "gather_one": (3, lambda: _with_exp("Gather", {"i": np.array(-2, np.int64)}, axis=0)),
    "tile": (3, lambda: _with_exp("Tile", {"r": _i64(2, 3)})),
    "expand": (3, lambda: _with_exp("Expand", {"r": _i64(2, 4, 5)})),
    "prelu": (1, lambda: single("PRelu", IMAGE, {"s": weights(4, 1, 1)})),
    "leaky_relu": (1, lambda: single("LeakyRelu", {"x": [2, 7]}, alpha=0.2)),
    "sin": (3, lambda: single("Sin", {"x": [2, 7]})),
    "ceil": (1, lambda: single("Ceil", {"x": [2, 7]})),
    "sign": (1, lambda: single("Sign", {"x": [2, 7]})),
    "erf": (1, lambda: single("Erf", {"x": [4, 60]})),
    "gelu": (1, lambda: single("Gelu", {"x": [4, 60]}, opset=20)),
    "gelu_tanh": (1, lambda: single("Gelu", {"x": [4, 60]}, opset=20, approximate="tanh")),
    "layer_norm": (1, lambda: single("LayerNormalization", {"x": [2, 3, 8]}, NORMS)),
    "instance_norm": (1, lambda: single("InstanceNormalization", IMAGE, CHANNELS)),
    "pixel_shuffle": (3, lambda: _with_image("DepthToSpace", blocksize=2, mode="CRD")),
    "depth_to_space": (3, lambda: _with_image("DepthToSpace", blocksize=2)),
    "space_to_depth": (3, lambda: _with_image("SpaceToDepth", blocksize=2)),
    "channel_shuffle": (3, _shuffle),
    "conv_1d": (1, lambda: _sequence("Conv", {"w": weights(6, 4, 3), "b": weights(6)})),
    "max_pool_1d": (1, lambda: _sequence("MaxPool", {}, kernel_shape=[3], strides=[2])),
    "detection_head": (1, _head),
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
