"""The case table of NNAPI operations: a model, what it becomes, from which level.

One table, three uses: `check` decides as the table says at every level; the lowering equals the
golden file; the simulator's answer equals ONNX Runtime's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.workers.onnx_models import make_model, single, weights

IMAGE = {"x": [1, 4, 8, 8]}
NEVER = 99


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        name: unique; the golden file's key.
        model: an ONNX model; everything it computes is one NNAPI subgraph from `level` on.
        operations: NNAPI operations it becomes at level 8, in order.
        level: least level that takes all of it; NEVER where none does.
        positive: inputs must be above zero (logarithms, roots).
        reason: rejection code below `level`.
    """

    name: str
    model: onnx.ModelProto
    operations: tuple[str, ...]
    level: int
    positive: bool = False
    reason: str = "nnapi.needs_level"


def _i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _unary() -> list[Case]:
    levels = {"Relu": 1, "Sigmoid": 1, "Tanh": 1, "Floor": 1}
    names = {"Sigmoid": "LOGISTIC", "Neg": "NEG"}
    cases = [
        Case(op.lower(), single(op, {"x": [2, 5]}), (names.get(op, op.upper()),), levels.get(op, 3))
        for op in ("Relu", "Sigmoid", "Tanh", "Floor", "Exp", "Abs", "Neg")
    ]
    roots = [
        Case(op.lower(), single(op, {"x": [2, 5]}), (op.upper(),), 3, positive=True)
        for op in ("Log", "Sqrt")
    ]
    cast = single(
        "Cast", {"x": [2, 5]}, output_types={"y": TensorProto.INT32}, to=TensorProto.INT32
    )
    return [*cases, *roots, Case("cast_int32", cast, ("CAST",), 3)]


def _binary() -> list[Case]:
    bias = {"c": weights(4, 1, 1)}
    cases = [
        Case(op.lower(), single(op, IMAGE, bias), (name,), level)
        for op, name, level in (
            ("Add", "ADD", 1),
            ("Mul", "MUL", 1),
            ("Sub", "SUB", 2),
            ("Div", "DIV", 2),
            ("Min", "MINIMUM", 3),
            ("Max", "MAXIMUM", 3),
        )
    ]
    power = single("Pow", {"x": [2, 5]}, {"c": np.full(5, 2.5, np.float32)})
    scalar = single("Mul", {"x": [2, 5]}, {"c": np.float32(3)})
    two = {"x": [2, 3, 4], "z": [3, 1]}
    relu = make_model(
        [
            helper.make_node("Add", ["x", "z"], ["s"], name="add"),
            helper.make_node("Relu", ["s"], ["y"], name="relu"),
        ],
        two,
        ["y"],
    )
    return [
        *cases,
        Case("pow", power, ("POW",), 3, positive=True),
        Case("scalar", scalar, ("MUL",), 1),
        Case("self", single("Add", {"x": [2, 5]}, args=["x", "x"]), ("ADD",), 1),
        Case("broadcast_relu", relu, ("ADD",), 1),
    ]


def _clip() -> list[Case]:
    def clip(low: float, high: float) -> onnx.ModelProto:
        return single("Clip", {"x": [3, 7]}, {"lo": np.float32(low), "hi": np.float32(high)})

    return [
        Case("relu6", clip(0, 6), ("RELU6",), 1),
        Case("relu1", clip(-1, 1), ("RELU1",), 1),
        Case("clip_any", clip(-0.5, 0.25), ("MINIMUM", "MAXIMUM"), 3),
        Case("clip_low", single("Clip", {"x": [3, 7]}, {"lo": np.float32(0.3)}), ("MAXIMUM",), 3),
    ]


def _convolutions() -> list[Case]:
    def conv(shape: tuple[int, ...], bias: int = 0, **attributes: object) -> onnx.ModelProto:
        constants = {"w": weights(*shape)} | ({"b": weights(bias, seed=1)} if bias else {})
        return single("Conv", IMAGE, constants, **attributes)

    inside, around = ("TRANSPOSE",), ("TRANSPOSE",)
    same = {"pads": [1, 1, 1, 1]}
    block = make_model(
        [
            helper.make_node(
                "Conv", ["x", "w", "b"], ["c"], name="conv", strides=[2, 1], pads=[1, 0, 2, 1]
            ),
            helper.make_node("Clip", ["c", "lo", "hi"], ["y"], name="clip"),
        ],
        IMAGE,
        ["y"],
        {"w": weights(6, 4, 3, 2), "b": weights(6), "lo": np.float32(0), "hi": np.float32(6)},
    )
    norm = make_model(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
            helper.make_node("BatchNormalization", ["c", "g", "b", "m", "v"], ["y"], name="norm"),
        ],
        IMAGE,
        ["y"],
        {
            "w": weights(5, 4, 1, 1),
            "g": weights(5),
            "b": weights(5, seed=1),
            "m": weights(5, seed=2),
            "v": np.abs(weights(5, seed=3)) + 0.5,
        },
    )
    return [
        Case("conv", conv((6, 4, 3, 3), **same), (*inside, "CONV_2D", *around), 2),
        Case(
            "conv_same_upper",
            conv((6, 4, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]),
            (*inside, "CONV_2D", *around),
            2,
        ),
        Case("conv_block", block, (*inside, "CONV_2D", *around), 2),
        Case("conv_batch_norm", norm, (*inside, "CONV_2D", *around), 2),
        Case(
            "conv_dilated",
            conv((6, 4, 3, 3), 6, dilations=[2, 1]),
            (*inside, "CONV_2D", *around),
            3,
        ),
        Case(
            "depthwise",
            conv((4, 1, 3, 3), 4, group=4, **same),
            (*inside, "DEPTHWISE_CONV_2D", *around),
            2,
        ),
        Case(
            "depthwise_multiplier",
            conv((8, 1, 3, 3), 8, group=4),
            (*inside, "DEPTHWISE_CONV_2D", *around),
            2,
        ),
        Case(
            "grouped",
            conv((6, 2, 3, 3), 6, group=2, **same),
            (*inside, "GROUPED_CONV_2D", *around),
            3,
        ),
        Case(
            "grouped_dilated",
            conv((6, 2, 3, 3), group=2, dilations=[2, 2]),
            (),
            NEVER,
            reason="nnapi.dilation",
        ),
    ]


def _matmuls() -> list[Case]:
    gemm = single("Gemm", {"x": [3, 16]}, {"w": weights(5, 16), "b": weights(5)}, transB=1)
    wide = single("MatMul", {"x": [2, 3, 16]}, {"w": weights(16, 5)})
    batch = single("MatMul", {"x": [2, 3, 16], "z": [2, 16, 4]})
    return [
        Case("gemm", gemm, ("FULLY_CONNECTED",), 1),
        Case("matmul_rank3", wide, ("RESHAPE", "FULLY_CONNECTED", "RESHAPE"), 1),
        Case("batch_matmul", batch, ("BATCH_MATMUL",), 6),
    ]


def _pools() -> list[Case]:
    def pool(op: str, **attributes: object) -> onnx.ModelProto:
        return single(op, IMAGE, kernel_shape=[3, 3], **attributes)

    def wrapped(name: str) -> tuple[str, ...]:
        return ("TRANSPOSE", name, "TRANSPOSE")

    return [
        Case(
            "max_pool",
            pool("MaxPool", strides=[2, 2], pads=[1, 1, 1, 1]),
            wrapped("MAX_POOL_2D"),
            2,
        ),
        Case(
            "max_pool_ceil", pool("MaxPool", strides=[2, 2], ceil_mode=1), wrapped("MAX_POOL_2D"), 2
        ),
        Case(
            "average_pool",
            pool("AveragePool", strides=[2, 2], pads=[1, 1, 1, 1]),
            wrapped("AVERAGE_POOL_2D"),
            2,
        ),
        Case(
            "average_pool_count",
            pool("AveragePool", count_include_pad=1, pads=[1, 1, 1, 1]),
            (),
            NEVER,
            reason="nnapi.padding",
        ),
    ]


def _reductions() -> list[Case]:
    return [
        Case("mean", single("ReduceMean", IMAGE, axes=[1], keepdims=0), ("MEAN",), 2),
        Case("mean_all", single("ReduceMean", {"x": [2, 5]}), ("MEAN",), 2),
        Case("sum", single("ReduceSum", IMAGE, {"axes": _i64(1, 2)}), ("REDUCE_SUM",), 3),
        Case("global_average", single("GlobalAveragePool", {"x": [1, 1, 8, 8]}), ("MEAN",), 2),
    ]


def _movements() -> list[Case]:
    pad = {"p": _i64(0, 1, 2, 0, 0, 3)}
    return [
        Case("softmax", single("Softmax", {"x": [2, 5]}, axis=-1), ("SOFTMAX",), 1),
        Case(
            "softmax_rank3",
            single("Softmax", {"x": [2, 3, 5]}, axis=-1),
            ("RESHAPE", "SOFTMAX", "RESHAPE"),
            1,
        ),
        Case("softmax_axis", single("Softmax", {"x": [2, 3, 5]}, axis=1), ("SOFTMAX",), 3),
        Case("log_softmax", single("LogSoftmax", {"x": [2, 3, 5]}, axis=1), ("LOG_SOFTMAX",), 3),
        Case("pad_zero", single("Pad", {"x": [2, 3, 4]}, pad), ("PAD",), 2),
        Case(
            "pad_value", single("Pad", {"x": [2, 3, 4]}, pad | {"v": np.float32(2)}), ("PAD_V2",), 3
        ),
        Case(
            "pad_reflect",
            single("Pad", {"x": [2, 3, 4]}, {"p": _i64(0, 1, 1, 0, 0, 2)}, mode="reflect"),
            ("MIRROR_PAD",),
            7,
        ),
    ]


def _combined() -> list[Case]:
    """Data movement alone is handed back, so it is tried behind something that computes."""

    def after_exp(
        op: str,
        *args: str,
        outputs: tuple[str, ...] = ("y",),
        constants: dict[str, np.ndarray] | None = None,
        shape: tuple[int, ...],
        opset: int = 17,
        **attributes: object,
    ) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Tanh", ["x"], ["t"], name="tanh"),
            helper.make_node(op, ["t", *args], list(outputs), name="node", **attributes),
        ]
        return make_model(nodes, {"x": list(shape)}, outputs, constants, opset)

    bounds = {"b": _i64(1, 0), "e": _i64(4, 2**31 - 1), "a": _i64(1, 2), "s": _i64(2, 3)}
    return [
        Case(
            "transpose",
            after_exp("Transpose", shape=(2, 3, 4), perm=[2, 0, 1]),
            ("TANH", "TRANSPOSE"),
            2,
        ),
        Case(
            "reshape",
            after_exp("Reshape", "s", shape=(2, 3, 4), constants={"s": _i64(0, -1)}),
            ("TANH", "RESHAPE"),
            1,
        ),
        Case("flatten", after_exp("Flatten", shape=(2, 3, 4)), ("TANH", "RESHAPE"), 1),
        Case(
            "squeeze",
            after_exp("Squeeze", "a", shape=(2, 1, 4), constants={"a": _i64(1)}),
            ("TANH", "RESHAPE"),
            1,
        ),
        Case(
            "unsqueeze",
            after_exp("Unsqueeze", "a", shape=(2, 4), constants={"a": _i64(1)}),
            ("TANH", "RESHAPE"),
            1,
        ),
        Case(
            "concat",
            after_exp("Concat", "x", shape=(2, 3, 4), axis=2),
            ("TANH", "CONCATENATION"),
            1,
        ),
        Case(
            "slice",
            after_exp("Slice", "b", "e", "a", "s", shape=(2, 6, 7), constants=bounds),
            ("TANH", "STRIDED_SLICE"),
            2,
        ),
        Case(
            "split",
            after_exp("Split", shape=(2, 6), outputs=("y", "z"), opset=18, axis=1, num_outputs=2),
            ("TANH", "STRIDED_SLICE", "STRIDED_SLICE"),
            2,
        ),
    ]


def _resizes() -> list[Case]:
    def resize(scale: float, **attributes: object) -> onnx.ModelProto:
        constants = {"s": np.array([1, 1, scale, scale], np.float32)}
        return single("Resize", IMAGE, constants, args=["x", "", "s"], **attributes)

    def wrapped(name: str) -> tuple[str, ...]:
        return ("TRANSPOSE", name, "TRANSPOSE")

    half, corner = "half_pixel", "align_corners"
    return [
        Case(
            "bilinear_asymmetric",
            resize(2, mode="linear", coordinate_transformation_mode="asymmetric"),
            wrapped("RESIZE_BILINEAR"),
            2,
        ),
        Case(
            "bilinear_half_pixel",
            resize(2, mode="linear", coordinate_transformation_mode=half),
            wrapped("RESIZE_BILINEAR"),
            4,
        ),
        Case(
            "bilinear_corners",
            resize(2, mode="linear", coordinate_transformation_mode=corner),
            wrapped("RESIZE_BILINEAR"),
            4,
        ),
        Case(
            "nearest_floor",
            resize(
                2, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
            ),
            wrapped("RESIZE_NEAREST_NEIGHBOR"),
            3,
        ),
        Case(
            "nearest_half_pixel",
            resize(2, mode="nearest", coordinate_transformation_mode=half),
            wrapped("RESIZE_NEAREST_NEIGHBOR"),
            4,
        ),
        Case(
            "nearest_ties",
            resize(0.5, mode="nearest", coordinate_transformation_mode=half),
            (),
            NEVER,
            reason="nnapi.resize_mode",
        ),
    ]


CASES: tuple[Case, ...] = (
    *_unary(),
    *_binary(),
    *_clip(),
    *_convolutions(),
    *_matmuls(),
    *_pools(),
    *_reductions(),
    *_movements(),
    *_combined(),
    *_resizes(),
)
