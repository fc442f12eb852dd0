"""Integer sums by instructions for small matrices (arm64 i8mm), under QEMU against ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from service.contracts.targets import CpuVariant
from tests.workers.backends.cpu.arm64 import assembly_of, play
from tests.workers.backends.cpu.models import Array, network

pytestmark = pytest.mark.arm64

STEP = 0.05


class Quantized:
    """A network in QDQ form, bytes of one type between its operators."""

    def __init__(self, dtype: type[np.int8 | np.uint8]) -> None:
        zero = 3 if dtype is np.int8 else 131
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: dict[str, Array] = {"s": np.float32(STEP), "z": dtype(zero)}
        self._random = np.random.default_rng(6)

    def rounded(self, value: str) -> str:
        self.nodes += [
            helper.make_node("QuantizeLinear", [value, "s", "z"], [f"{value}_q"]),
            helper.make_node("DequantizeLinear", [f"{value}_q", "s", "z"], [f"{value}_r"]),
        ]
        return f"{value}_r"

    def weights(self, *shape: int, axis: int) -> str:
        name = f"w{len(self.tensors)}"
        scales = self._random.uniform(0.5, 1.5, shape[axis]) / 60 / np.sqrt(np.prod(shape[1:]))
        self.tensors |= {
            name: self._random.integers(-127, 128, shape, np.int8),
            f"{name}_s": scales.astype(np.float32),
            f"{name}_z": np.zeros(shape[axis], np.int8),
        }
        sides = [name, f"{name}_s", f"{name}_z"]
        self.nodes.append(helper.make_node("DequantizeLinear", sides, [f"{name}_r"], axis=axis))
        return f"{name}_r"

    def convolution(self, value: str, *shape: int, **attributes: object) -> str:
        weight, result = self.weights(*shape, axis=0), f"c{len(self.nodes)}"
        self.nodes.append(helper.make_node("Conv", [value, weight], [result], **attributes))
        return self.rounded(result)

    def model(self, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
        constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in self.tensors.items()]
        return network(self.nodes, shapes, constants)


def images(dtype: type[np.int8 | np.uint8], batch: int) -> onnx.ModelProto:
    """Borders, odd widths and channels, a stride, which has no neighbouring rows."""
    made = Quantized(dtype)
    value = made.convolution(made.rounded("x"), 21, 5, 3, 3, pads=[1, 1, 1, 1])
    value = made.convolution(value, 16, 21, 1, 1)
    value = made.convolution(value, 24, 16, 3, 3, pads=[0, 1, 1, 0], strides=[2, 1])
    value = made.convolution(value, 11, 24, 3, 3, pads=[1, 1, 1, 1], strides=[2, 2])
    made.nodes.append(helper.make_node("Identity", [value], ["y"]))
    return made.model({"x": (batch, 5, 11, 13)})


def matrices(dtype: type[np.int8 | np.uint8], rows: int) -> onnx.ModelProto:
    made = Quantized(dtype)
    left = made.rounded("x")
    made.nodes.append(helper.make_node("MatMul", [left, made.weights(19, 13, axis=1)], ["m"]))
    left = made.rounded("m")
    made.nodes.append(helper.make_node("MatMul", [left, made.weights(13, 32, axis=1)], ["y"]))
    return made.model({"x": (2, rows, 19)})


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_convolutions(tmp_path: Path, dtype: type[np.int8 | np.uint8]) -> None:
    # A step of the output is a hundredth of its range.
    play(images(dtype, 2), 0.02, tmp_path, CpuVariant.I8MM)


@pytest.mark.parametrize(("dtype", "rows"), [(np.int8, 1), (np.uint8, 7), (np.int8, 12)])
def test_matrices(tmp_path: Path, dtype: type[np.int8 | np.uint8], rows: int) -> None:
    play(matrices(dtype, rows), 0.02, tmp_path, CpuVariant.I8MM)


def test_the_inner_loops_multiply_matrices(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(images(np.int8, 1), path)
    assembly = assembly_of(path, CpuVariant.I8MM)
    assert len(re.findall(r"\bsmmla\s", assembly)) > 50
    assert len(re.findall(r"\bsdot\s", assembly)) > 10  # the stride
    assert "smmla" not in assembly_of(path, CpuVariant.DOTPROD)
