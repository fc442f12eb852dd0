"""More networks to measure the CPU part with: residual, squeeze-and-expand, transformer encoder.

Weights are random, as in `benchmarks.networks`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from benchmarks.networks import _Network, mobilenet_v2

RESNET_STAGES = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
"""Blocks a stage (He et al. 2015, table 1)."""

SQUEEZENET_FIRES = (16, 16, 32, 32, 48, 48, 64, 64)
"""Squeezed channels a fire module; each expands to eight times as many (SqueezeNet 1.1)."""


def resnet(depth: int) -> onnx.ModelProto:
    """ResNet18 (basic blocks) or ResNet50 (bottlenecks) at 224 x 224, batch norm folded."""
    net = _Network()
    x = net.node("Relu", net.conv("input", (3, 64), kernel=7, stride=2))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, blocks in enumerate(RESNET_STAGES[depth]):
        width = 64 << stage
        out = width if depth == 18 else width * 4
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _residual(net, x, (channels, width, out), stride, is_basic=depth == 18)
            channels = out
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.linear(x, (channels, 1000)), 1000)


def _residual(
    net: _Network, x: str, sizes: tuple[int, int, int], stride: int, is_basic: bool
) -> str:
    channels, width, out = sizes
    if is_basic:
        y = net.node("Relu", net.conv(x, (channels, width), 3, stride))
        y = net.conv(y, (width, out), 3)
    else:
        y = net.node("Relu", net.conv(x, (channels, width)))
        y = net.node("Relu", net.conv(y, (width, width), 3, stride))
        y = net.conv(y, (width, out))
    shortcut = x if channels == out and stride == 1 else net.conv(x, (channels, out), 1, stride)
    return net.node("Relu", net.node("Add", y, shortcut))


def squeezenet() -> onnx.ModelProto:
    """SqueezeNet 1.1 at 224 x 224."""
    net = _Network()
    x = net.node("Relu", net.conv("input", (3, 64), kernel=3, stride=2))
    channels = 64
    for index, squeezed in enumerate(SQUEEZENET_FIRES):
        if index in (0, 2, 4):
            x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
        y = net.node("Relu", net.conv(x, (channels, squeezed)))
        half = squeezed * 4
        one = net.node("Relu", net.conv(y, (squeezed, half)))
        three = net.node("Relu", net.conv(y, (squeezed, half), 3))
        x = net.node("Concat", one, three, axis=1)
        channels = 2 * half
    x = net.node("Relu", net.conv(x, (channels, 1000)))
    return net.model(net.node("Flatten", net.node("GlobalAveragePool", x)), 1000)


def transformer(
    layers: int = 4, tokens: int = 128, width: int = 384, heads: int = 12
) -> onnx.ModelProto:
    """Encoder layers as exporters write them: post-norm, decomposed attention, GELU by Erf."""
    net = _Network()
    x = "input"
    for _ in range(layers):
        x = _norm(net, net.node("Add", x, _attention(net, x, tokens, width, heads)), width)
        hidden = _gelu(net, _dense(net, x, width, 4 * width))
        x = _norm(net, net.node("Add", x, _dense(net, hidden, 4 * width, width)), width)
    shape = [1, tokens, width]
    graph = helper.make_graph(
        net.nodes,
        "network",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        net.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _dense(net: _Network, x: str, inputs: int, outputs: int) -> str:
    weight = np.random.default_rng(inputs).standard_normal((inputs, outputs)) / math.sqrt(inputs)
    y = net.node("MatMul", x, net.constant(weight.astype(np.float32)))
    return net.node("Add", y, net.constant(np.zeros(outputs, np.float32)))


def _attention(net: _Network, x: str, tokens: int, width: int, heads: int) -> str:
    split = net.constant(np.array([1, tokens, heads, width // heads], np.int64))
    query, key, value = (net.node("Reshape", _dense(net, x, width, width), split) for _ in range(3))
    query = net.node("Transpose", query, perm=[0, 2, 1, 3])
    key = net.node("Transpose", key, perm=[0, 2, 3, 1])
    value = net.node("Transpose", value, perm=[0, 2, 1, 3])
    scale = net.constant(np.float32(1 / math.sqrt(width // heads)).reshape(()))
    weights = net.node("Softmax", net.node("Mul", net.node("MatMul", query, key), scale), axis=-1)
    y = net.node("Transpose", net.node("MatMul", weights, value), perm=[0, 2, 1, 3])
    y = net.node("Reshape", y, net.constant(np.array([1, tokens, width], np.int64)))
    return _dense(net, y, width, width)


def _gelu(net: _Network, x: str) -> str:
    root, one, half = (net.constant(np.float32(v).reshape(())) for v in (math.sqrt(2), 1, 0.5))
    error = net.node("Erf", net.node("Div", x, root))
    return net.node("Mul", net.node("Mul", x, net.node("Add", error, one)), half)


def _norm(net: _Network, x: str, width: int) -> str:
    scale, bias = np.ones(width, np.float32), np.zeros(width, np.float32)
    return net.node(
        "LayerNormalization", x, net.constant(scale), net.constant(bias), axis=-1, epsilon=1e-5
    )


def save_networks(folder: Path) -> list[Path]:
    """All networks as files."""
    networks = {
        "mobilenet_v2": mobilenet_v2(),
        "resnet18": resnet(18),
        "resnet50": resnet(50),
        "squeezenet": squeezenet(),
        "transformer": transformer(),
    }
    paths = []
    for name, model in networks.items():
        paths.append(folder / f"{name}.onnx")
        onnx.save(model, paths[-1])
    return paths


def save_quantized(path: Path, folder: Path) -> Path:
    """A network in QDQ form, uint8 and int8 per channel, calibrated with random images."""
    prepared, quantized = folder / "prepared.onnx", folder / f"{path.stem}_int8.onnx"
    quant_pre_process(path, prepared, skip_symbolic_shape=True)
    quantize_static(
        prepared,
        quantized,
        _RandomSamples(prepared),
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return quantized


class _RandomSamples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, path: Path) -> None:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        random = np.random.default_rng(0)
        self._samples = iter(
            {
                i.name: random.standard_normal(i.shape).astype(np.float32)
                for i in session.get_inputs()
            }
            for _ in range(4)
        )

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._samples, None)
