"""Train the example model: handwritten digits, 8x8 pixels, 10 classes.

    python examples/digits/train.py

Writes `digits.onnx` and the held-out test set `digits_test.npz` beside this file. The data comes
with scikit-learn (dependency group `examples`); the seed is fixed, so a second run on one machine
writes the same bytes. The network is small on purpose but has what mobile networks have: ordinary,
depthwise and 1x1 convolutions, ReLU and ReLU6, a residual sum, both kinds of pooling.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from layers import Clip, Conv, Gemm, GlobalAveragePool, Layer, MaxPool, Residual, Tensor
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 20
TEST_COUNT = 200
EPOCHS = 40
BATCH_SIZE = 32
LEARNING_RATE = 4e-3
CHANNELS = 24
WIDE_CHANNELS = 64
CLASSES = 10
OPSET = 17

HERE = Path(__file__).parent
Labels = NDArray[np.int64]


class Network:
    """The layers by name, so that training and export speak of the same objects."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.stem = Conv(rng, 1, CHANNELS, 3)
        self.depthwise = Conv(rng, CHANNELS, CHANNELS, 3, groups=CHANNELS)
        self.pointwise = Conv(rng, CHANNELS, CHANNELS, 1)
        self.wide = Conv(rng, CHANNELS, WIDE_CHANNELS, 3)
        self.classifier = Gemm(rng, WIDE_CHANNELS, CLASSES)
        self.layers: list[Layer] = [
            self.stem,
            Clip(6.0),
            Residual([self.depthwise, Clip(np.inf), self.pointwise]),
            Clip(np.inf),
            MaxPool(),
            self.wide,
            Clip(np.inf),
            GlobalAveragePool(),
            self.classifier,
        ]

    def forward(self, images: Tensor) -> Tensor:
        """Logits [N, 10] of images [N, 1, 8, 8]."""
        result = images
        for layer in self.layers:
            result = layer.forward(result)
        return result

    def backward(self, gradient: Tensor) -> None:
        """Store every parameter's gradient."""
        for layer in reversed(self.layers):
            gradient = layer.backward(gradient)


class Adam:
    """Adam (Kingma and Ba, 2015) with its usual constants."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers
        self.step_count = 0
        parameters = [p for layer in layers for p in layer.parameters]
        self.means = [np.zeros_like(p) for p in parameters]
        self.squares = [np.zeros_like(p) for p in parameters]

    def step(self, learning_rate: float) -> None:
        """Move every parameter once, in place."""
        self.step_count += 1
        parameters = [p for layer in self.layers for p in layer.parameters]
        gradients = [g for layer in self.layers for g in layer.gradients]
        rate = learning_rate * np.sqrt(1 - 0.999**self.step_count) / (1 - 0.9**self.step_count)
        moments = zip(self.means, self.squares, strict=True)
        for (mean, square), parameter, gradient in zip(moments, parameters, gradients, strict=True):
            np.add(mean, 0.1 * (gradient - mean), out=mean)
            np.add(square, 0.001 * (gradient * gradient - square), out=square)
            move = rate * mean / (np.sqrt(square) + 1e-8)
            np.subtract(parameter, move, out=parameter)


def load_data(rng: np.random.Generator) -> tuple[Tensor, Labels, Tensor, Labels]:
    """Training images and labels, then held-out ones; pixels are scaled to [0, 1]."""
    digits = load_digits()
    images = (digits.images[:, None] / 16.0).astype(np.float32)
    labels = digits.target.astype(np.int64)
    order = rng.permutation(len(images))
    test, train = order[:TEST_COUNT], order[TEST_COUNT:]
    return images[train], labels[train], images[test], labels[test]


def loss_gradient(logits: Tensor, labels: Labels) -> Tensor:
    """Gradient of the mean cross entropy at the logits."""
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    gradient = exponents / exponents.sum(axis=1, keepdims=True)
    gradient[np.arange(len(labels)), labels] -= 1.0
    return gradient / len(labels)


def train(network: Network, images: Tensor, labels: Labels, rng: np.random.Generator) -> None:
    """Adam, with a learning rate that falls to zero along a half cosine."""
    optimiser = Adam(network.layers)
    for epoch in range(EPOCHS):
        learning_rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            network.backward(loss_gradient(network.forward(images[batch]), labels[batch]))
            optimiser.step(learning_rate)


def export(network: Network) -> onnx.ModelProto:
    """The network as ONNX, batch 1; operations and nodes bear the names of the layers."""
    tensors: dict[str, Tensor] = {"zero": np.float32(0), "six": np.float32(6)}
    for name in ("stem", "depthwise", "pointwise", "wide", "classifier"):
        weight, bias = getattr(network, name).parameters
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = weight, bias

    def conv(name: str, source: str, kernel: int, group: int = 1) -> onnx.NodeProto:
        pad = kernel // 2
        return helper.make_node(
            "Conv", [source, f"{name}.weight", f"{name}.bias"], [f"{name}.out"], name=name,
            kernel_shape=[kernel, kernel], pads=[pad] * 4, strides=[1, 1], group=group,
        )  # fmt: skip

    def node(name: str, op_type: str, *sources: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(op_type, list(sources), [f"{name}.out"], name=name, **attributes)

    nodes = [
        conv("stem", "image", 3),
        node("stem_relu6", "Clip", "stem.out", "zero", "six"),
        conv("depthwise", "stem_relu6.out", 3, group=CHANNELS),
        node("depthwise_relu", "Relu", "depthwise.out"),
        conv("pointwise", "depthwise_relu.out", 1),
        node("residual", "Add", "stem_relu6.out", "pointwise.out"),
        node("residual_relu", "Relu", "residual.out"),
        node("pool", "MaxPool", "residual_relu.out", kernel_shape=[2, 2], strides=[2, 2]),
        conv("wide", "pool.out", 3),
        node("wide_relu", "Relu", "wide.out"),
        node("average", "GlobalAveragePool", "wide_relu.out"),
        node("flatten", "Flatten", "average.out", axis=1),
        helper.make_node(
            "Gemm", ["flatten.out", "classifier.weight", "classifier.bias"], ["logits"],
            name="classifier", transB=1,
        ),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()],
    )
    model = helper.make_model(
        graph, producer_name="nnfarm-example", opset_imports=[helper.make_opsetid("", OPSET)]
    )
    model.ir_version = 8  # the one of opset 17: older readers take it too
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    rng = np.random.default_rng(SEED)
    images, labels, test_images, test_labels = load_data(rng)
    network = Network(rng)
    train(network, images, labels, rng)
    top1 = float((network.forward(test_images).argmax(axis=1) == test_labels).mean())
    onnx.save(export(network), HERE / "digits.onnx")
    # One image a sample with the model's own batch dimension of 1: [N, 1, 1, 8, 8].
    np.savez_compressed(HERE / "digits_test.npz", image=test_images[:, None], labels=test_labels)
    print(f"top-1 on {TEST_COUNT} held-out images: {top1:.3f}")


if __name__ == "__main__":
    main()
