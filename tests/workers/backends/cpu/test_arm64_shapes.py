"""Every family of kernels on arm64 over drawn shapes, under QEMU against ONNX Runtime.

One network has many branches, each with shapes of its own: what takes time is to compile, link and
start, not to compute.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from service.contracts.targets import CpuVariant
from tests.workers.backends.cpu.arm64 import play
from tests.workers.backends.cpu.models import Array, network

pytestmark = pytest.mark.arm64

HEIGHT, WIDTH = 13, 15
STEP, ZERO = 0.03, 128


class Branches:
    """A network whose output is all branches' results, one behind the other."""

    def __init__(self, seed: int, batch: int, is_quantized: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.batch = batch
        self.is_quantized = is_quantized
        self.channels = self.draw(1, 40)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._results: list[str] = []

    def draw(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def constant(self, array: Array) -> str:
        name = f"w{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def weights(self, *shape: int, terms: int) -> str:
        """Of results about as large as the data."""
        real = (self.random.standard_normal(shape) / np.sqrt(terms)).astype(np.float32)
        if not self.is_quantized:
            return self.constant(real)
        scale = np.abs(real).max() / 127
        integers = self.constant(np.rint(real / scale).astype(np.int8))
        numbers = self.constant(np.float32(scale)), self.constant(np.int8(0))
        return self.op("DequantizeLinear", integers, *numbers)

    def rounded(self, value: str) -> str:
        if not self.is_quantized:
            return value
        numbers = self.constant(np.float32(STEP)), self.constant(np.uint8(ZERO))
        return self.op("DequantizeLinear", self.op("QuantizeLinear", value, *numbers), *numbers)

    def add(self, value: str) -> None:
        self._results.append(self.op("Reshape", value, self.constant(np.array([-1], np.int64))))

    def model(self) -> onnx.ModelProto:
        last = helper.make_node("Concat", self._results, ["y"], axis=0)
        shape = (self.batch, self.channels, HEIGHT, WIDTH)
        return network([*self._nodes, last], {"x": shape}, self._constants)


def convolution(made: Branches, data: str) -> str:
    kernel = [made.draw(1, 7), made.draw(1, 7)]
    step, dilation = made.draw(1, 2), made.draw(1, 2)
    weight = made.weights(
        made.draw(1, 70), made.channels, *kernel, terms=made.channels * kernel[0] * kernel[1]
    )
    return made.op(
        "Relu",
        made.op(
            "Conv", data, weight, strides=[step] * 2, dilations=[dilation] * 2,
            pads=[dilation * (k // 2) for k in kernel] * 2,
        ),
    )  # fmt: skip


def winograd(made: Branches, data: str) -> str:
    wide = made.op("Conv", data, made.weights(32, made.channels, 1, 1, terms=made.channels))
    weight = made.weights(32, 32, 3, 3, terms=288)
    return made.op("Conv", made.rounded(wide), weight, pads=[made.draw(0, 1)] * 4)


def depthwise(made: Branches, data: str) -> str:
    kernel = [made.draw(1, 7), made.draw(1, 7)]
    weight = made.weights(made.channels, 1, *kernel, terms=kernel[0] * kernel[1])
    pads = [k // 2 for k in kernel] * 2
    step = [made.draw(1, 2)] * 2
    return made.op("Conv", data, weight, strides=step, pads=pads, group=made.channels)


def grouped(made: Branches, data: str) -> str:
    groups, inputs = made.draw(2, 5), made.draw(1, 9)
    wide = made.op(
        "Conv", data, made.weights(groups * inputs, made.channels, 1, 1, terms=made.channels)
    )
    weight = made.weights(groups * made.draw(1, 17), inputs, 3, 3, terms=9 * inputs)
    return made.op("Conv", made.rounded(wide), weight, pads=[1] * 4, group=groups)


def transposed(made: Branches, data: str) -> str:
    kernel, step = made.draw(1, 4), made.draw(1, 3)
    weight = made.weights(made.channels, made.draw(1, 20), kernel, kernel, terms=made.channels)
    return made.op("ConvTranspose", data, weight, strides=[step] * 2)


def pools(made: Branches, data: str) -> str:
    size, step = made.draw(2, 4), made.draw(1, 2)
    kind = ("MaxPool", "AveragePool")[made.draw(0, 1)]
    return made.op(kind, data, kernel_shape=[size, size], strides=[step] * 2, pads=[1] * 4)


def resized(made: Branches, data: str) -> str:
    sizes = [made.batch, made.channels, made.draw(5, 30), made.draw(5, 30)]
    mode = ("nearest", "linear")[made.draw(0, 1)]
    frame = ("asymmetric", "half_pixel", "align_corners")[made.draw(0, 2)]
    return made.op(
        "Resize", data, "", "", made.constant(np.array(sizes, np.int64)), mode=mode,
        coordinate_transformation_mode=frame, nearest_mode="floor",
    )  # fmt: skip


def attention(made: Branches, data: str) -> str:
    tokens = made.constant(np.array([made.batch, made.channels, HEIGHT * WIDTH], np.int64))
    rows = made.op("Transpose", made.op("Reshape", data, tokens), perm=[0, 2, 1])
    width = made.draw(3, 33)
    query, key = (
        made.op("MatMul", rows, made.weights(made.channels, width, terms=made.channels))
        for _ in range(2)
    )
    scores = made.op("MatMul", query, made.op("Transpose", key, perm=[0, 2, 1]))
    mixed = made.op("MatMul", made.op("Softmax", scores, axis=-1), rows)
    ones = made.constant(np.ones(made.channels, np.float32))
    return made.op("LayerNormalization", mixed, ones, ones, epsilon=1e-3)


def elementwise(made: Branches, data: str) -> str:
    gated = made.op("Mul", data, made.op("Sigmoid", data))
    mean = made.op("ReduceMean", gated, axes=[2, 3], keepdims=1)
    turned = made.op("Transpose", made.op("Add", gated, mean), perm=[0, 3, 1, 2])
    joined = made.op("Concat", made.op("Tanh", turned), made.op("Erf", turned), axis=1)
    return made.op("ReduceMax", joined, axes=[1], keepdims=0)


FAMILIES: tuple[Callable[[Branches, str], str], ...] = (
    *(convolution, convolution, convolution, winograd, depthwise, depthwise, grouped, transposed),
    *(pools, pools, resized, resized, attention, elementwise),
)


@pytest.mark.parametrize(
    ("seed", "batch", "variant"),
    [(1, 1, None), (2, 3, None), (3, 1, CpuVariant.DOTPROD), (4, 3, CpuVariant.I8MM)],
)
def test_drawn_shapes(tmp_path: Path, seed: int, batch: int, variant: CpuVariant | None) -> None:
    is_quantized = variant is not None
    made = Branches(seed, batch, is_quantized)
    data = made.rounded("x")
    for family in FAMILIES:
        made.add(family(made, data))
    # Sums in another order; where bytes are rounded between two layers, a step here and there.
    play(made.model(), 0.02 if is_quantized else 2e-5, tmp_path, variant)
