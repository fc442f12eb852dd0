"""What TVM's own partition for NNAPI gets wrong or never takes, as models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.workers.onnx_models import make_model, single, weights

IMAGE = {"x": [1, 4, 9, 7]}


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        name: what upstream gets wrong, or the operation it never takes.
        model: a model that shows it.
        level: least level at which none of it is left on the CPU.
    """

    name: str
    model: onnx.ModelProto
    level: int


NEVER = 99
"""A level for what NNAPI cannot hold: it stays on the CPU, and is not taken and then refused."""


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _chain(*nodes: onnx.NodeProto, **constants: Any) -> onnx.ModelProto:
    return make_model(nodes, IMAGE, ["y"], constants)


def _after_tanh(op: str, *args: str, shape: tuple[int, ...] = (2, 3, 4), **given: Any) -> Any:
    """Movement alone is handed back to the CPU, so it stands behind something that computes."""
    constants = {name: given.pop(name) for name in args if name in given}
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
        helper.make_node(op, ["t", *args], ["y"], name="node", **given),
    ]
    return make_model(nodes, {"x": shape}, ["y"], constants)


def _conv(**attributes: Any) -> onnx.ModelProto:
    return single("Conv", IMAGE, {"w": weights(6, 4, 3, 2), "b": weights(6)}, **attributes)


def _pool(op: str = "MaxPool", **attributes: Any) -> onnx.ModelProto:
    return single(op, IMAGE, **({"kernel_shape": [3, 2]} | attributes))


def _residual() -> onnx.ModelProto:
    """A sum of two tensors behind a convolution, of a shape that a bias could have, too."""
    node = helper.make_node
    return make_model(
        [
            node("Conv", ["x", "w"], ["c"], name="conv"),
            node("Add", ["c", "z"], ["y"], name="residual"),
        ],
        {"x": [1, 4, 9, 7], "z": [1, 6, 9, 7]},
        ["y"],
        {"w": weights(6, 4, 1, 1)},
    )


def _long_indices() -> onnx.ModelProto:
    node = helper.make_node
    return _chain(
        node("Tanh", ["x"], ["t"], name="tanh"),
        node("Cast", ["t"], ["i"], name="to_int64", to=TensorProto.INT64),
        node("Cast", ["i"], ["y"], name="back", to=TensorProto.FLOAT),
    )


def _double() -> onnx.ModelProto:
    node = helper.make_node
    return _chain(
        node("Tanh", ["x"], ["t"], name="tanh"),
        node("Cast", ["t"], ["i"], name="to_float64", to=TensorProto.DOUBLE),
        node("Exp", ["i"], ["e"], name="exp"),
        node("Cast", ["e"], ["y"], name="back", to=TensorProto.FLOAT),
    )


def _bool_output() -> onnx.ModelProto:
    constants = {"c": np.float32(0.25)}
    return single("Greater", IMAGE, constants, output_types={"y": TensorProto.BOOL})


def _where() -> onnx.ModelProto:
    node = helper.make_node
    return _chain(
        node("Greater", ["x", "low"], ["m"], name="greater"),
        node("Where", ["m", "x", "low"], ["y"], name="where"),
        low=np.float32(-0.5),
    )


def _gelu() -> onnx.ModelProto:
    node = helper.make_node
    return _chain(
        node("Div", ["x", "root"], ["d"], name="div"),
        node("Erf", ["d"], ["e"], name="erf"),
        node("Add", ["e", "one"], ["a"], name="add"),
        node("Mul", ["x", "a"], ["m"], name="mul"),
        node("Mul", ["m", "half"], ["y"], name="halve"),
        root=np.float32(np.sqrt(2)),
        one=np.float32(1),
        half=np.float32(0.5),
    )


def _batch_norm() -> onnx.ModelProto:
    constants = {name: weights(4, seed=k) for k, name in enumerate(("s", "b", "m"))}
    variance = {"v": np.linspace(0.5, 2, 4, dtype=np.float32)}
    return single("BatchNormalization", IMAGE, constants | variance)


def _int32_add() -> onnx.ModelProto:
    node = helper.make_node("Add", ["x", "z"], ["y"], name="add")
    shapes = {"x": [2, 3], "z": [2, 3]}
    types = {"y": TensorProto.INT32}
    return make_model([node], shapes, ["y"], output_types=types, input_type=TensorProto.INT32)


WRONG = (
    Case("conv_and_residual_add_is_not_a_bias", _residual(), 1),
    Case("dilation", _conv(dilations=[2, 3]), 1),
    Case("ceil_mode", _pool(strides=[2, 2], ceil_mode=1), 1),
    Case("softmax_axis", single("Softmax", {"x": [2, 3, 5]}, axis=1), 2),
    Case("nhwc_taken_as_nchw", _conv(pads=[1, 0, 1, 1]), 1),
    Case("stride_order", _conv(strides=[3, 1]), 1),
    Case("pool_size_order", _pool(kernel_shape=[4, 2], strides=[1, 2]), 1),
    Case("int64_and_cast_to_int64", _long_indices(), NEVER),
    Case("float64", _double(), NEVER),
    Case("bool_output", _bool_output(), 3),
    Case("mean_of_all_axes", single("ReduceMean", {"x": [2, 3, 4]}, keepdims=1), 1),
    Case("mean_of_all_axes_of_rank_0", single("ReduceMean", {"x": [2, 3, 4]}, keepdims=0), 1),
    Case("x_plus_x", single("Add", {"x": [2, 5]}, args=["x", "x"]), 1),
    Case("matmul_rank_2", single("MatMul", {"x": [3, 4], "z": [4, 5]}), 2),
    Case("matmul_rank_4", single("MatMul", {"x": [2, 3, 4, 5], "z": [2, 3, 5, 2]}), 2),
    Case("matmul_broadcast", single("MatMul", {"x": [2, 3, 4], "z": [4, 5]}), 2),
    Case("rank_5", single("Tanh", {"x": [2, 2, 3, 2, 2]}), NEVER),
    Case("nchw_at_level_1", _conv(), 1),
    Case("int32_add", _int32_add(), 4),
)

NEVER_TAKEN = (
    Case("clip", single("Clip", IMAGE, {"a": np.float32(-0.5), "b": np.float32(0.7)}), 1),
    Case("relu6", single("Clip", IMAGE, {"a": np.float32(0), "b": np.float32(6)}), 1),
    Case("reshape", _after_tanh("Reshape", "s", s=_ints(4, -1)), 1),
    Case("concat", _after_tanh("Concat", "x", axis=1), 1),
    Case("split", _after_tanh("Slice", "a", "b", a=_ints(0, 1, 0), b=_ints(2, 3, 4)), 1),
    Case("conv_without_bias", single("Conv", IMAGE, {"w": weights(6, 4, 3, 3)}), 1),
    Case(
        "resize",
        single(
            "Resize",
            IMAGE,
            {"s": np.array([1, 1, 2, 2], np.float32)},
            args=["x", "", "s"],
            mode="linear",
            coordinate_transformation_mode="asymmetric",
        ),
        1,
    ),
    Case("take", _after_tanh("Gather", "i", i=_ints(2, 0), axis=1), 3),
    Case("layer_norm", single("LayerNormalization", {"x": [2, 3, 8]}, {"s": weights(8)}), 1),
    Case("gelu", _gelu(), 1),
    Case("where", _where(), 3),
    Case("expand_dims", _after_tanh("Unsqueeze", "a", a=_ints(1)), 1),
    Case("squeeze", _after_tanh("Squeeze", "a", a=_ints(1), shape=(2, 1, 4)), 1),
    Case("broadcast_to", _after_tanh("Expand", "s", s=_ints(2, 3, 4), shape=(2, 1, 4)), 1),
    Case("average_pool", _pool("AveragePool"), 1),
    Case("batch_norm", _batch_norm(), 1),
)
