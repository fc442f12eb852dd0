"""Quantized ONNX: QDQ and QOperator models of ONNX Runtime's own tool, and each operation alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)

from service.contracts.errors import NnfarmError
from tests.workers.frontends.hosts import on_host
from tests.workers.onnx_models import make_model, weights
from workers.frontends.onnx import import_onnx
from workers.graph.graph import constant_value, dtype_of
from workers.graph.quantization import DEQUANTIZE, QUANTIZE, quantization_of
from workers.pipeline.stages.ingest import normalise

RNG = np.random.default_rng(5)


class Images(CalibrationDataReader):
    def __init__(self) -> None:
        self._images = iter([{"x": weights(1, 3, 16, 16, seed=s)} for s in range(8)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._images, None)


def float_network() -> onnx.ModelProto:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], name="stem", strides=[2, 2], auto_pad="SAME_UPPER"),
        node("Relu", ["c1"], ["r1"], name="stem_act"),
        node("Conv", ["r1", "w2", "b1"], ["c2"], name="deep", pads=[1, 1, 1, 1], group=8),
        node("LeakyRelu", ["c2"], ["r2"], name="deep_act", alpha=0.2),
        node("Add", ["r1", "r2"], ["s"], name="sum"),
        node("MaxPool", ["s"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("AveragePool", ["p"], ["a"], name="mean", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Sigmoid", ["a"], ["g"], name="gate"),
        node("Mul", ["p", "g"], ["m"], name="scale"),
        node("Concat", ["m", "p"], ["j"], name="join", axis=1),
        node("GlobalAveragePool", ["j"], ["gp"], name="squeeze"),
        node("Flatten", ["gp"], ["f"], name="flat"),
        node("Gemm", ["f", "w3", "b3"], ["y"], name="head", transB=1),
    ]
    constants = {
        "w1": weights(8, 3, 3, 3), "b1": weights(8, seed=1), "w2": weights(8, 1, 3, 3, seed=2),
        "w3": weights(5, 16, seed=3), "b3": weights(5, seed=4),
    }  # fmt: skip
    return make_model(nodes, {"x": [1, 3, 16, 16]}, ["y"], constants)


def expected(path: Path, *inputs: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path)
    names = [item.name for item in session.get_inputs()]
    answers: list[np.ndarray] = session.run(None, dict(zip(names, inputs, strict=True)))
    return answers


@pytest.mark.parametrize("per_channel", [True, False], ids=["per-channel", "per-tensor"])
@pytest.mark.parametrize("activations", [QuantType.QUInt8, QuantType.QInt8], ids=["u8", "s8"])
@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator], ids=["qdq", "qop"])
def test_network_gives_the_numbers_of_onnx_runtime(
    form: QuantFormat, activations: QuantType, per_channel: bool, tmp_path: Path
) -> None:
    source, path = tmp_path / "float.onnx", tmp_path / "quantized.onnx"
    onnx.save(float_network(), source)
    quantize_static(
        source, path, Images(), quant_format=form, per_channel=per_channel,
        activation_type=activations, weight_type=QuantType.QInt8,
    )  # fmt: skip
    graph = import_onnx(path).graph
    run = on_host(graph)
    step = 0.05  # a few steps of the output's scale: rounding differs along the way
    for seed in range(20, 24):
        image = weights(1, 3, 16, 16, seed=seed)
        for got, want in zip(run(image), expected(path, image), strict=True):
            np.testing.assert_allclose(got, want, atol=step * np.abs(want).max() + 1e-3)
    calls = [b for b in graph.bindings if b.call is not None]
    assert all(len(graph.origin_of(b.var)) == 1 for b in calls)
    stored = [
        b for b in calls
        if b.op_name == DEQUANTIZE and constant_value(b.call.args[0]) is not None  # type: ignore[union-attr]
    ]  # fmt: skip
    assert {dtype_of(b.call.args[0]) for b in stored if b.call is not None} == {"int8", "int32"}


def test_axis_and_origins_of_qdq_nodes(tmp_path: Path) -> None:
    constants = {
        "w": RNG.integers(-127, 127, (4, 3, 1, 1), np.int8),
        "ws": np.array([0.1, 0.2, 0.3, 0.4], np.float32), "wz": np.zeros(4, np.int8),
        "s": np.array(0.05, np.float32), "z": np.array(3, np.uint8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="dq"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["k"], name="w_dq", axis=0),
        helper.make_node("Conv", ["d", "k"], ["y"], name="conv"),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(make_model(nodes, {"x": [1, 3, 4, 4]}, ["y"], constants), path)
    graph = import_onnx(path).graph
    named = [
        (b.op_name, graph.nodes[min(graph.origin_of(b.var))].name)
        for b in graph.bindings
        if b.call is not None
    ]
    assert named == [
        (QUANTIZE, "q"), (DEQUANTIZE, "dq"), (DEQUANTIZE, "w_dq"), ("relax.nn.conv2d", "conv"),
    ]  # fmt: skip
    weight = quantization_of(graph.bindings[2].call)
    assert weight is not None
    assert (weight.axis, weight.dtype, weight.zero_points) == (0, "int8", (0, 0, 0, 0))
    image = weights(1, 3, 4, 4)
    np.testing.assert_allclose(on_host(graph)(image)[0], expected(path, image)[0], atol=1e-4)


@pytest.mark.parametrize("opset", [10, 13, 17, 19, 21])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_rounding_and_clamping_at_every_opset(opset: int, dtype: Any, tmp_path: Path) -> None:
    constants = {"s": np.array(0.5, np.float32), "z": np.array(7, dtype)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], name="d"),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(make_model(nodes, {"x": [1, 9]}, ["y"], constants, opset), path)
    data = np.array([[-1e4, -0.75, -0.25, 0, 0.25, 0.75, 1.25, 3.1, 1e4]], np.float32)
    got = on_host(import_onnx(path).graph)(data)[0]
    np.testing.assert_array_equal(got, expected(path, data)[0])


def integer_model(
    op: str, inputs: dict[str, Any], constants: dict[str, Any], outputs: dict[str, int],
    domain: str = "", **attributes: Any,
) -> onnx.ModelProto:  # fmt: skip
    """One node over inputs of any element type; "-" in a constant's name orders the operands."""
    order = [*inputs, *constants]
    order.sort(key=lambda name: int(name.split("-")[0]))
    node = helper.make_node(op, order, list(outputs), name="node", domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def bytes_of(*shape: int, dtype: Any = np.uint8) -> np.ndarray:
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


MS = "com.microsoft"
U8, I32, F32 = TensorProto.UINT8, TensorProto.INT32, TensorProto.FLOAT
X = {"0-x": bytes_of(1, 4, 6, 6)}
X_NUMBERS = {"1-s": scale(0.02), "2-z": zero(120)}
Y_NUMBERS = {"3-s": scale(0.02), "4-z": zero(110)}
CASES: dict[str, tuple[onnx.ModelProto, dict[str, np.ndarray], int]] = {
    name: (integer_model(op, inputs, constants, outputs, domain, **attributes), inputs, slack)
    for name, op, inputs, constants, outputs, domain, attributes, slack in [
        (
            "conv", "QLinearConv", X,
            {**X_NUMBERS, "3-w": bytes_of(6, 4, 3, 3, dtype=np.int8),
             "4-s": RNG.uniform(0.001, 0.01, 6).astype(np.float32), "5-z": np.zeros(6, np.int8),
             "6-s": scale(0.1), "7-z": zero(130), "8-b": RNG.integers(-999, 999, 6, np.int32)},
            {"y": U8}, "", {"pads": [1, 1, 0, 0], "strides": [2, 1]}, 1,
        ),
        (
            "conv 1d", "QLinearConv", {"0-x": bytes_of(1, 4, 9)},
            {**X_NUMBERS, "3-w": bytes_of(6, 4, 3, dtype=np.int8), "4-s": scale(0.01),
             "5-z": zero(0, np.int8), "6-s": scale(0.1), "7-z": zero(130)},
            {"y": U8}, "", {"auto_pad": "SAME_LOWER"}, 1,
        ),
        (
            "matmul", "QLinearMatMul", {"0-a": bytes_of(2, 3, 8)},
            {**X_NUMBERS, "3-b": bytes_of(8, 5, dtype=np.int8),
             "4-s": RNG.uniform(0.001, 0.02, 5).astype(np.float32), "5-z": np.zeros(5, np.int8),
             "6-s": scale(0.1), "7-z": zero(130)},
            {"y": U8}, "", {}, 1,
        ),
        (
            "gemm", "QGemm", {"0-a": bytes_of(3, 8)},
            {**X_NUMBERS, "3-b": bytes_of(5, 8, dtype=np.int8), "4-s": scale(0.01),
             "5-z": zero(0, np.int8), "6-c": RNG.integers(-999, 999, 5, np.int32),
             "7-s": scale(0.1), "8-z": zero(130)},
            {"y": U8}, MS, {"transB": 1}, 1,
        ),
        (
            "gemm to float", "QGemm", {"0-a": bytes_of(3, 8)},
            {**X_NUMBERS, "3-b": bytes_of(8, 5), "4-s": scale(0.01), "5-z": zero(99)},
            {"y": F32}, MS, {}, 1e-4,
        ),
        *(
            (op, op, {"0-a": bytes_of(1, 4, 3), "3-b": bytes_of(4, 3)},
             {**X_NUMBERS, "4-s": scale(0.01), "5-z": zero(5), "6-s": scale(0.05),
              "7-z": zero(100)}, {"y": U8}, MS, {}, 1)
            for op in ("QLinearAdd", "QLinearMul")
        ),
        ("sigmoid", "QLinearSigmoid", X, {**X_NUMBERS, "3-s": scale(1 / 256), "4-z": zero(0)},
         {"y": U8}, MS, {}, 1),
        ("leaky", "QLinearLeakyRelu", X, {**X_NUMBERS, **Y_NUMBERS}, {"y": U8}, MS,
         {"alpha": 0.3}, 1),
        ("softmax", "QLinearSoftmax", X, {**X_NUMBERS, "3-s": scale(1 / 256), "4-z": zero(0)},
         {"y": U8}, MS, {"opset": 13, "axis": -1}, 1),
        ("global mean", "QLinearGlobalAveragePool", X, {**X_NUMBERS, **Y_NUMBERS}, {"y": U8}, MS,
         {}, 1),
        ("mean", "QLinearAveragePool", X, {**X_NUMBERS, **Y_NUMBERS}, {"y": U8}, MS,
         {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, 1),
        ("concat", "QLinearConcat", {"2-a": bytes_of(1, 2, 5), "5-b": bytes_of(1, 3, 5)},
         {"0-s": scale(0.02), "1-z": zero(100), "3-s": scale(0.01), "4-z": zero(3),
          "6-s": scale(0.03), "7-z": zero(200)}, {"y": U8}, MS, {"axis": 1}, 1),
        ("matmul integer", "MatMulInteger", {"0-a": bytes_of(3, 2000)},
         {"1-b": bytes_of(2000, 5), "2-z": zero(120), "3-z": bytes_of(5)}, {"y": I32}, "", {}, 0),
        ("conv integer", "ConvInteger", X, {"1-w": bytes_of(6, 4, 3, 3), "2-z": zero(12)},
         {"y": I32}, "", {"pads": [1, 1, 1, 1]}, 0),
        ("dynamic", "DynamicQuantizeLinear", {"0-x": weights(3, 50)}, {},
         {"y": U8, "s": F32, "z": U8}, "", {}, 1),
    ]
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_integer_operation_gives_the_numbers_of_onnx_runtime(name: str, tmp_path: Path) -> None:
    model, inputs, slack = CASES[name]
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    graph = import_onnx(path).graph
    answers = on_host(graph)(*inputs.values())
    for got, want in zip(answers, expected(path, *inputs.values()), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), atol=slack)
    assert {i for b in graph.bindings for i in graph.origin_of(b.var)} == {0}


def wide_and_small() -> onnx.ModelProto:
    """Activations of 16 bits, weights of 4 bits, one scale a channel and one a block."""
    integers = np.random.default_rng(2).integers(-8, 8, (6, 4))
    columns = np.random.default_rng(3).integers(0, 16, (6, 5))
    constants = {"s": scale(0.001), "z": np.array(700, np.uint16)}
    constants |= {"ws": weights(6) ** 2 + 0.01, "bs": weights(3, 5) ** 2 + 0.01}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="wide"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"], name="real"),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["a"], name="channels", axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["c"], axis=0, block_size=2),
        helper.make_node("Gemm", ["r", "a"], ["m"], name="gemm", transB=1),
        helper.make_node("MatMul", ["m", "c"], ["y"], name="matmul"),
    ]
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", F32, [3, 4])],
        [helper.make_tensor_value_info("y", F32, [3, 5])],
        [
            *(numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()),
            helper.make_tensor("w", TensorProto.INT4, [6, 4], integers.reshape(-1)),
            helper.make_tensor("b", TensorProto.UINT4, [6, 5], columns.reshape(-1)),
            helper.make_tensor("bz", TensorProto.UINT4, [3, 5], np.arange(15)),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def scaled_as_it_goes() -> onnx.ModelProto:
    """Quantized by what the data itself says, and back."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="dynamic"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], name="real"),
    ]
    return make_model(nodes, {"x": [3, 4]}, ["y"], {}, 21)


def packed() -> onnx.ModelProto:
    """Weights of four bits, two in a byte, as ONNX Runtime's tools pack them."""
    bytes_ = np.random.default_rng(4).integers(0, 256, (5, 3, 8), np.uint8)
    constants = {"b": bytes_, "s": weights(15) ** 2, "z": bytes_[:, 0, :2].reshape(-1)}
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w"], ["h"], name="gemm"),
            helper.make_node(
                "MatMulNBits", ["h", "b", "s", "z"], ["y"], name="packed",
                domain="com.microsoft", K=36, N=5, bits=4, block_size=16,
            ),
        ],
        "case",
        [helper.make_tensor_value_info("x", F32, [3, 4])],
        [helper.make_tensor_value_info("y", F32, [3, 5])],
        [
            numpy_helper.from_array(np.asarray(v), n)
            for n, v in {**constants, "w": weights(4, 36)}.items()
        ],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("build", [wide_and_small, scaled_as_it_goes, packed])
def test_other_than_eight_bits_and_constants_are_real_numbers(
    build: Callable[[], onnx.ModelProto], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(build(), path)
    graph, data = import_onnx(path).graph, weights(3, 4, seed=9)
    (got,) = on_host(graph)(data)
    np.testing.assert_allclose(got, expected(path, data)[0], rtol=1e-4, atol=1e-5)
    assert not {"int16", "uint16"} & {dtype_of(b.var) for b in normalise(graph).bindings}


@pytest.mark.parametrize(("depth", "dtype"), [(300, "float32"), (3000, "int32")])
def test_integer_products_are_real_where_every_sum_fits(
    depth: int, dtype: str, tmp_path: Path
) -> None:
    constants = {"w": np.full((depth, 5), 127, np.int8), "wz": np.zeros(5, np.int8)}
    constants["w"][:, 1:] = RNG.integers(-128, 128, (depth, 4))
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="dynamic"),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["y"], name="product"),
    ]
    model = make_model(nodes, {"x": [3, depth]}, ["y"], constants, 17, {"y": I32})
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    graph, data = import_onnx(path).graph, np.abs(weights(3, depth, seed=8)) + 1
    products = [b for b in graph.bindings if b.op_name == "relax.matmul"]
    assert [dtype_of(b.var) for b in products] == [dtype]
    np.testing.assert_array_equal(on_host(graph)(data)[0], expected(path, data)[0])


def test_blocks_of_activations_are_refused_by_name(tmp_path: Path) -> None:
    constants = {"s": weights(2, 3) ** 2 + 0.01}
    node = helper.make_node(
        "QuantizeLinear", ["x", "s"], ["q"], name="blocks", axis=0, block_size=2,
        output_dtype=TensorProto.INT8,
    )  # fmt: skip
    model = make_model([node], {"x": [4, 3]}, ["q"], constants, 21, {"q": TensorProto.INT8})
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    with pytest.raises(NnfarmError, match="by blocks") as caught:
        import_onnx(path)
    assert caught.value.details["node"] == "blocks"
