"""Networks to measure with, drawn by their papers' tables; weights are random (He initialisation).

Speed does not depend on the values of weights, so no trained file has to be shipped.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

MOBILENET_V2_BLOCKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, channels, repeats, stride (Sandler et al. 2018, table 2)."""

RESNET50_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Width of the bottleneck, repeats (He et al. 2016, table 1)."""


class _Network:
    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, array: NDArray[np.generic]) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def conv(
        self, x: str, size: tuple[int, int], kernel: int = 1, stride: int = 1, groups: int = 1
    ) -> str:
        channels_in, channels_out = size
        shape = (channels_out, channels_in // groups, kernel, kernel)
        scale = math.sqrt(2 / (shape[1] * kernel * kernel))
        weight = (self._random.standard_normal(shape) * scale).astype(np.float32)
        bias = np.zeros(channels_out, np.float32)
        pad = kernel // 2
        return self.node(
            "Conv", x, self.constant(weight), self.constant(bias),
            kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4, group=groups,
        )  # fmt: skip

    def relu6(self, x: str) -> str:
        bounds = (self.constant(np.float32(v).reshape(())) for v in (0, 6))
        return self.node("Clip", x, *bounds)

    def linear(self, x: str, size: tuple[int, int]) -> str:
        weight = (self._random.standard_normal(size[::-1]) / math.sqrt(size[0])).astype(np.float32)
        bias = np.zeros(size[1], np.float32)
        return self.node("Gemm", x, self.constant(weight), self.constant(bias), transB=1)

    def model(self, output: str, output_size: int) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, 224, 224])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, output_size])],
            self.weights,
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8)


def mobilenet_v2() -> onnx.ModelProto:
    """MobileNetV2 1.0 at 224 x 224, batch norm folded as exporters do: 3.5 M weights."""
    net = _Network()
    x = net.relu6(net.conv("input", (3, 32), kernel=3, stride=2))
    channels = 32
    for expansion, out, repeats, first_stride in MOBILENET_V2_BLOCKS:
        for index in range(repeats):
            stride = first_stride if index == 0 else 1
            hidden = channels * expansion
            y = net.relu6(net.conv(x, (channels, hidden))) if expansion > 1 else x
            y = net.relu6(net.conv(y, (hidden, hidden), 3, stride, groups=hidden))
            y = net.conv(y, (hidden, out))
            x = net.node("Add", x, y) if stride == 1 and channels == out else y
            channels = out
    x = net.relu6(net.conv(x, (channels, 1280)))
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.linear(x, (1280, 1000)), 1000)


def resnet50() -> onnx.ModelProto:
    """ResNet50 at 224 x 224, batch norm folded as exporters do: 25.5 M weights."""
    net = _Network()
    x = net.node("Relu", net.conv("input", (3, 64), kernel=7, stride=2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for width, repeats in RESNET50_STAGES:
        for index in range(repeats):
            stride = 2 if index == 0 and width > 64 else 1
            y = net.node("Relu", net.conv(x, (channels, width)))
            y = net.node("Relu", net.conv(y, (width, width), 3, stride))
            y = net.conv(y, (width, 4 * width))
            shortcut = x if index else net.conv(x, (channels, 4 * width), 1, stride)
            x = net.node("Relu", net.node("Add", y, shortcut))
            channels = 4 * width
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.linear(x, (channels, 1000)), 1000)


def save(model: onnx.ModelProto, path: Path) -> Path:
    """The network as a file."""
    onnx.save(model, path)
    return path
