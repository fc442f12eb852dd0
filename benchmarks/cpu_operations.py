"""One small network for each class of operations: which class is behind, not only which network.

Every class several times in a row, so that the change of layout in front of images counts little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Shape = Sequence[int]

_IMAGE = (1, 64, 56, 56)
_TIMES = 6


class _Chain:
    """Nodes one behind the other."""

    def __init__(self, shape: Shape) -> None:
        self.shape = tuple(shape)
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._last = "input"

    def add(
        self, op: str, *constants: NDArray[np.generic], repeats: int = 0, **attrs: object
    ) -> None:
        """A node of what was last, or of `repeats` times that, and constants."""
        names = [f"c{len(self._constants) + i}" for i in range(len(constants))]
        self._constants += [
            numpy_helper.from_array(array, name)
            for array, name in zip(constants, names, strict=True)
        ]
        inputs = [self._last] * max(repeats, 1) + names
        self._last = f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [self._last], **attrs))

    def values(self, *shape: int) -> NDArray[np.float32]:
        """Small normal values."""
        return (self._random.standard_normal(shape) * 0.05).astype(np.float32)

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self._nodes,
            "operations",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(self._last, TensorProto.FLOAT, None)],
            self._constants,
        )
        opset = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def _convolutions(kernel: int, groups: int, shape: Shape = _IMAGE) -> onnx.ModelProto:
    chain, channels = _Chain(shape), shape[1]
    for _ in range(_TIMES):
        weight = chain.values(channels, channels // groups, kernel, kernel)
        chain.add("Conv", weight, chain.values(channels), pads=[kernel // 2] * 4, group=groups)
        chain.add("Relu")
    return chain.model()


def _transposed() -> onnx.ModelProto:
    chain = _Chain((1, 64, 14, 14))
    for _ in range(2):
        chain.add("ConvTranspose", chain.values(64, 64, 2, 2), strides=[2, 2])
    return chain.model()


def _dense(rows: int) -> onnx.ModelProto:
    chain = _Chain((rows, 384))
    for _ in range(_TIMES):
        chain.add("MatMul", chain.values(384, 384))
    return chain.model()


def _repeated(shape: Shape, *ops: tuple[str, dict[str, object]]) -> onnx.ModelProto:
    chain = _Chain(shape)
    for _ in range(_TIMES):
        for op, attrs in ops:
            chain.add(op, **attrs)  # type: ignore[arg-type]
    return chain.model()


def _attention_scores() -> onnx.ModelProto:
    chain = _Chain((12, 128, 128))
    for _ in range(_TIMES):
        chain.add("MatMul", repeats=2)
        chain.add("Tanh")
    return chain.model()


def _layer_norm() -> onnx.ModelProto:
    chain = _Chain((128, 384))
    for _ in range(_TIMES):
        chain.add("LayerNormalization", np.ones(384, np.float32), chain.values(384), axis=-1)
    return chain.model()


def _resize(mode: str) -> onnx.ModelProto:
    chain = _Chain((1, 64, 28, 28))
    for _ in range(2):
        scales = np.array([1, 1, 2, 2], np.float32)
        chain.add("Resize", np.array([], np.float32), scales, mode=mode)
    return chain.model()


def _concat() -> onnx.ModelProto:
    chain = _Chain((1, 16, 56, 56))
    for _ in range(2):
        chain.add("Concat", repeats=3, axis=1)
        chain.add("Relu")
    return chain.model()


def _reduction() -> onnx.ModelProto:
    chain = _Chain((8, 64, 28, 28))
    chain.add("ReduceMean", axes=[2, 3], keepdims=1)
    return chain.model()


_POOL: dict[str, object] = {"kernel_shape": [3, 3], "pads": [1] * 4}

OPERATIONS: dict[str, Callable[[], onnx.ModelProto]] = {
    "convolution_1x1": lambda: _convolutions(1, 1),
    "convolution_3x3": lambda: _convolutions(3, 1),
    "convolution_5x5": lambda: _convolutions(5, 1, (1, 64, 28, 28)),
    "depthwise_3x3": lambda: _convolutions(3, 64),
    "depthwise_5x5": lambda: _convolutions(5, 64),
    "grouped": lambda: _convolutions(3, 8),
    "transposed_convolution": _transposed,
    "dense": lambda: _dense(128),
    "dense_one_row": lambda: _dense(1),
    "matmul_of_two": _attention_scores,
    "max_pool": lambda: _repeated(_IMAGE, ("MaxPool", _POOL)),
    "average_pool": lambda: _repeated(_IMAGE, ("AveragePool", _POOL)),
    "reduction": _reduction,
    "softmax": lambda: _repeated((12, 128, 128), ("Softmax", {"axis": -1})),
    "layer_norm": _layer_norm,
    "element_wise": lambda: _repeated(_IMAGE, ("Sigmoid", {}), ("Tanh", {}), ("Neg", {})),
    "transpose": lambda: _repeated((8, 128, 64), ("Transpose", {"perm": [0, 2, 1]}), ("Relu", {})),
    "resize_linear": lambda: _resize("linear"),
    "resize_nearest": lambda: _resize("nearest"),
    "concat": _concat,
}
"""Class to its network."""


def save_operations(folder: Path) -> list[Path]:
    """All of them as files."""
    paths = []
    for name, network in OPERATIONS.items():
        paths.append(folder / f"{name}.onnx")
        onnx.save(network(), paths[-1])
    return paths
