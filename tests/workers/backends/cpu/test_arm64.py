"""Kernels for arm64 under QEMU against ONNX Runtime, and what their inner loops are made of."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from service.contracts.targets import CpuVariant
from tests.workers.backends.cpu.arm64 import assembly_of, play
from tests.workers.backends.cpu.halves import half_model
from tests.workers.backends.cpu.models import Array, network

pytestmark = pytest.mark.arm64


def values(*shape: int) -> Array:
    return (np.random.default_rng(4).standard_normal(shape) * 0.3).astype(np.float32)


def every_family(is_quantized: bool, channels: int = 21) -> onnx.ModelProto:
    """Convolution, SiLU, depthwise, pool, softmax of an attention, dense."""
    tensors: dict[str, Array] = {
        "w0": values(channels, 3, 3, 3), "b0": values(channels),
        "w1": values(channels, 1, 3, 3),
        "w2": values(16, channels, 1, 1), "w3": values(16, 10), "b3": values(10),
        "rows": np.array([1, 16, 36], np.int64),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1] * 4),
        helper.make_node("Sigmoid", ["c0"], ["s0"]),
        helper.make_node("Mul", ["c0", "s0"], ["m0"]),
        helper.make_node("Conv", ["m0", "w1"], ["c1"], pads=[1] * 4, group=channels),
        helper.make_node("MaxPool", ["c1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "weight2" if is_quantized else "w2"], ["c2"]),
        helper.make_node("Reshape", ["c2", "rows"], ["r2"]),
        helper.make_node("Transpose", ["r2"], ["t2"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t2", "r2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["soft"], axis=-1),
        helper.make_node("MatMul", ["soft", "t2"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "w3"], ["d3"]),
        helper.make_node("Add", ["d3", "b3"], ["y"]),
    ]
    if is_quantized:
        tensors |= {"s": np.float32(0.02), "z": np.uint8(128), "ws": np.float32(0.01)}
        tensors |= {"wz": np.int8(0), "w2": np.rint(tensors["w2"] * 100).astype(np.int8)}
        nodes[5:6] = [
            helper.make_node("QuantizeLinear", ["p1", "s", "z"], ["q1"]),
            helper.make_node("DequantizeLinear", ["q1", "s", "z"], ["d1"]),
            helper.make_node("DequantizeLinear", ["w2", "ws", "wz"], ["weight2"]),
            helper.make_node("Conv", ["d1", "weight2"], ["c2"]),
        ]
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in tensors.items()]
    return network(nodes, {"x": (1, 3, 12, 12)}, constants)


def every_own_convolution() -> onnx.ModelProto:
    """Winograd's filtering, joined groups, a concat of channels, a transposed convolution."""
    tensors = {
        "w0": values(32, 3, 3, 3), "w1": values(32, 32, 3, 3), "w2": values(24, 8, 3, 3),
        "w3": values(56, 8, 3, 3),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1] * 4),
        helper.make_node("Conv", ["c0", "w1"], ["c1"], pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1] * 4, group=4),
        helper.make_node("Concat", ["r1", "c2"], ["both"], axis=1),
        helper.make_node("ConvTranspose", ["both", "w3"], ["y"], strides=[2, 2], pads=[1] * 4),
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    return network(nodes, {"x": (1, 3, 12, 12)}, constants)


@pytest.mark.parametrize(
    ("is_quantized", "variant"),
    [(False, None), (True, None), (True, CpuVariant.DOTPROD), (True, CpuVariant.I8MM)],
    ids=["float32", "int8", "int8-dotprod", "int8-i8mm"],
)
def test_a_network_of_every_family(
    tmp_path: Path, is_quantized: bool, variant: CpuVariant | None
) -> None:
    play(every_family(is_quantized), 0.02 if is_quantized else 2e-5, tmp_path, variant)


def test_halves(tmp_path: Path) -> None:
    play(half_model(), 2e-3, tmp_path)


def test_convolutions_of_our_own(tmp_path: Path) -> None:
    play(every_own_convolution(), 2e-5, tmp_path)


def test_lstm(tmp_path: Path) -> None:
    tensors = {"w": values(2, 80, 6), "r": values(2, 80, 20), "b": values(2, 160)}
    node = helper.make_node(
        "LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=20, direction="bidirectional"
    )
    constants = [numpy_helper.from_array(array, name) for name, array in tensors.items()]
    play(network([node], {"x": (7, 2, 6)}, constants), 2e-5, tmp_path)


def test_integer_sums_are_dot_products_where_the_core_has_them(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(every_family(is_quantized=True), path)
    assert len(re.findall(r"\bsdot\s", assembly_of(path, CpuVariant.DOTPROD))) > 20
    assert "sdot" not in assembly_of(path)


def test_inner_loops_are_vector_multiply_adds(tmp_path: Path) -> None:
    """Nearly all multiply-adds; an epilogue over odd channels would be scalar, its sum not."""
    path = tmp_path / "model.onnx"
    onnx.save(every_family(is_quantized=False, channels=24), path)
    assembly = assembly_of(path)
    vector = len(re.findall(r"\bfmla\s+v\d+\.4s", assembly))
    scalar = len(re.findall(r"\bfmadd\s+s\d+", assembly))
    assert vector > 100
    assert vector > 20 * scalar
