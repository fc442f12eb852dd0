"""Answers of operations against NumPy and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.device_farm.simulator import nnapi
from tests.device_farm.simulator.nnapi import TENSOR_FLOAT32, Array, Library, Model, run_operation

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def onnx_conv(
    x: Array,
    weights: Array,
    bias: Array,
    group: int,
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """ONNX Runtime's convolution of an NHWC image with OHWI weights."""
    node = helper.make_node(
        "Conv",
        ["x", "w", "b"],
        ["y"],
        group=group,
        strides=strides,
        pads=pads,
        dilations=dilations,
    )
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("x", "w", "b", "y")
    ]
    graph = helper.make_graph([node], "conv", values[:3], values[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = {"x": x.transpose(0, 3, 1, 2), "w": weights.transpose(0, 3, 1, 2), "b": bias}
    return np.asarray(session.run(None, feeds)[0]).transpose(0, 2, 3, 1)


@pytest.mark.parametrize(
    ("strides", "pads", "dilations", "channels"),
    [
        ((1, 1), (0, 0, 0, 0), (1, 1), (3, 5)),
        ((2, 1), (1, 0, 2, 1), (1, 1), (4, 17)),
        ((1, 2), (2, 2, 2, 2), (2, 3), (8, 33)),
    ],
)
def test_conv_2d(
    library: Library,
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilations: tuple[int, int],
    channels: tuple[int, int],
) -> None:
    depth, units = channels
    x, weights, bias = floats(2, 13, 11, depth), floats(units, 3, 3, depth), floats(units)
    expected = onnx_conv(x, weights, bias, 1, strides, pads, dilations)
    top, left, bottom, right = pads

    def inputs(model: Model) -> list[int]:
        image = model.input(TENSOR_FLOAT32, x.shape)
        numbers = (left, right, top, bottom, strides[1], strides[0], 0)
        scalars = [model.scalar(n) for n in numbers]
        tail = [model.scalar(n) for n in (dilations[1], dilations[0])]
        return [
            image,
            model.constant(weights),
            model.constant(bias),
            *scalars,
            model.scalar(False),
            *tail,
        ]

    answer = run_operation(
        library, nnapi.CONV_2D, inputs, [x], (TENSOR_FLOAT32, expected.shape, 0.0, 0)
    )
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_conv_2d_in_nchw(library: Library, multiplier: int) -> None:
    depth = 6
    x, bias = floats(1, 9, 8, depth), floats(depth * multiplier)
    weights = floats(1, 3, 3, depth * multiplier)
    expected = onnx_conv(
        x, weights.transpose(3, 1, 2, 0), bias, depth, (1, 1), (1, 1, 1, 1), (1, 1)
    ).transpose(0, 3, 1, 2)

    def inputs(model: Model) -> list[int]:
        image = model.input(TENSOR_FLOAT32, (1, depth, 9, 8))
        scalars = [model.scalar(n) for n in (1, 1, 1, multiplier, 0)]
        return [image, model.constant(weights), model.constant(bias), *scalars, model.scalar(True)]

    answer = run_operation(
        library,
        nnapi.DEPTHWISE_CONV_2D,
        inputs,
        [x.transpose(0, 3, 1, 2)],
        (TENSOR_FLOAT32, expected.shape, 0.0, 0),
    )
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)


def test_per_channel_conv_2d_is_the_float_one_rounded(library: Library) -> None:
    x = RNG.integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
    weights = RNG.integers(-127, 128, (5, 1, 1, 4)).astype(np.int8)
    bias = RNG.integers(-500, 500, 5).astype(np.int32)
    scales = [0.01, 0.02, 0.03, 0.005, 0.015]

    def inputs(model: Model) -> list[int]:
        image = model.input(nnapi.TENSOR_QUANT8_SIGNED, x.shape, 0.1, 3)
        filters = model.per_channel(weights, 0, scales)
        return [image, filters, model.constant(bias), *(model.scalar(n) for n in (2, 1, 1, 1))]

    real = (x.astype(np.float64) - 3) * 0.1 @ (weights[:, 0, 0].T * np.array(scales))
    real = np.maximum(real + bias * 0.1 * np.array(scales), 0)
    expected = np.clip(np.round(real / 0.2) - 100, -128, 127)
    answer = run_operation(
        library,
        nnapi.CONV_2D,
        inputs,
        [x],
        (nnapi.TENSOR_QUANT8_SIGNED, (1, 6, 6, 5), 0.2, -100),
    )
    assert np.abs(answer.astype(int) - expected).max() <= 1
    assert np.mean(answer == expected) > 0.99


Case = tuple[int, Callable[[Model], list[int]], Array, list[Array]]


def _unary(code: int, x: Array, expected: Array) -> Case:
    return code, lambda m: [m.input(TENSOR_FLOAT32, x.shape)], expected, [x]


X = floats(2, 3, 4, 5)
M = floats(3, 7)
CASES: dict[str, Case] = {
    "abs": _unary(nnapi.ABS, X, np.abs(X)),
    "logistic": _unary(nnapi.LOGISTIC, X, 1 / (1 + np.exp(-X))),
    "hard_swish": _unary(nnapi.HARD_SWISH, X, X * np.clip(X + 3, 0, 6) / 6),
    "add_broadcast_relu6": (
        nnapi.ADD,
        lambda m: [m.input(TENSOR_FLOAT32, X.shape), m.constant(X[0, :1, :, :1]), m.scalar(3)],
        np.clip(X + X[0, :1, :, :1], 0, 6),
        [X],
    ),
    "softmax_axis_1": (
        nnapi.SOFTMAX,
        lambda m: [m.input(TENSOR_FLOAT32, X.shape), m.scalar(2.0), m.scalar(1)],
        np.exp(2 * X) / np.exp(2 * X).sum(1, keepdims=True),
        [X],
    ),
    "fully_connected": (
        nnapi.FULLY_CONNECTED,
        lambda m: [
            m.input(TENSOR_FLOAT32, (3, 7)),
            m.constant(np.tile(M, (9, 1))),
            m.constant(np.arange(27, dtype=np.float32)),
            m.scalar(0),
        ],
        M @ np.tile(M, (9, 1)).T + np.arange(27),
        [M],
    ),
    "batch_matmul_adjoint": (
        nnapi.BATCH_MATMUL,
        lambda m: [
            m.input(TENSOR_FLOAT32, X.shape),
            m.constant(X),
            m.scalar(True),
            m.scalar(False),
        ],
        np.swapaxes(X, 2, 3) @ X,
        [X],
    ),
    "average_pool_same": (
        nnapi.AVERAGE_POOL_2D,
        lambda m: [
            m.input(TENSOR_FLOAT32, X.shape),
            *(m.scalar(n) for n in (1, 2, 3, 1, 1, 0)),
        ],
        X[:, ::3, ::2],
        [X],
    ),
    "reduce_sum": (
        nnapi.REDUCE_SUM,
        lambda m: [
            m.input(TENSOR_FLOAT32, X.shape),
            m.constant(np.array([1, -1], np.int32)),
            m.scalar(False),
        ],
        X.sum((1, 3)),
        [X],
    ),
    "transpose": (
        nnapi.TRANSPOSE,
        lambda m: [
            m.input(TENSOR_FLOAT32, X.shape),
            m.constant(np.array([2, 0, 3, 1], np.int32)),
        ],
        X.transpose(2, 0, 3, 1),
        [X],
    ),
    "reshape": (
        nnapi.RESHAPE,
        lambda m: [m.input(TENSOR_FLOAT32, X.shape), m.constant(np.array([-1, 8], np.int32))],
        X.reshape(-1, 8),
        [X],
    ),
    "gather": (
        nnapi.GATHER,
        lambda m: [
            m.input(TENSOR_FLOAT32, X.shape),
            m.scalar(2),
            m.constant(np.array([[3, 0], [1, 1]], np.int32)),
        ],
        np.take(X, [[3, 0], [1, 1]], axis=2),
        [X],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(library: Library, name: str) -> None:
    code, inputs, expected, feeds = CASES[name]
    output = (TENSOR_FLOAT32, expected.shape, 0.0, 0)
    answer = run_operation(library, code, inputs, feeds, output)
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-5)


def test_integers_keep_all_their_bits(library: Library) -> None:
    x = np.array([2**31 - 1, -(2**31), 2**24 + 1], np.int32)

    def inputs(model: Model) -> list[int]:
        return [
            model.input(nnapi.TENSOR_INT32, (3,)),
            model.constant(np.ones(3, np.int32)),
            model.scalar(0),
        ]

    answer = run_operation(library, nnapi.SUB, inputs, [x], (nnapi.TENSOR_INT32, (3,), 0.0, 0))
    np.testing.assert_array_equal(answer, [2**31 - 2, 2**31 - 1, 2**24])


def test_float16_is_rounded_once(library: Library) -> None:
    x = RNG.standard_normal(1000).astype(np.float16)

    def inputs(model: Model) -> list[int]:
        return [model.input(nnapi.TENSOR_FLOAT16, (1000,)), model.constant(x), model.scalar(0)]

    answer = run_operation(library, nnapi.MUL, inputs, [x], (nnapi.TENSOR_FLOAT16, (1000,), 0.0, 0))
    np.testing.assert_array_equal(answer, (x.astype(np.float32) ** 2).astype(np.float16))
