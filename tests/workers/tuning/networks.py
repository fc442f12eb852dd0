"""Small ONNX models whose kernels are long enough to be tuned."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from service.contracts.jobs import ModelFormat
from service.contracts.targets import Abi
from tests.workers.backends.cpu.models import network
from workers.pipeline.stages.ingest import ingest
from workers.tuning.host import host_abi, host_target
from workers.tuning.kernels import kernels_of


def _weights(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32) * 0.1


def convolutions(channels: int = 11, size: int = 15, name: str = "x") -> onnx.ModelProto:
    """A convolution, a depthwise one, a matmul over the pooled image, softmax."""
    c = channels
    constants = {
        "w": _weights(c, 3, 3, 3),
        "d": _weights(c, 1, 3, 3),
        "p": _weights(c, c, 1, 1),
        "m": _weights(c, 17),
    }
    nodes = [
        helper.make_node("Conv", [name, "w"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "d"], ["e"], group=c, pads=[1, 1, 1, 1]),
        helper.make_node("Clip", ["e", "low", "high"], ["f"]),
        helper.make_node("Conv", ["f", "p"], ["g"]),
        helper.make_node("Add", ["g", "b"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["i"]),
        helper.make_node("Flatten", ["i"], ["j"]),
        helper.make_node("MatMul", ["j", "m"], ["k"]),
        helper.make_node("Softmax", ["k"], ["y"], axis=-1),
    ]
    limits = {"low": np.float32(0), "high": np.float32(6)}
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants | limits).items()]
    return network(nodes, {name: (1, 3, size, size)}, tensors)


def depthwise(channels: int = 32, size: int = 28) -> onnx.ModelProto:
    """One depthwise convolution."""
    node = helper.make_node("Conv", ["x", "d"], ["y"], group=channels, pads=[1, 1, 1, 1])
    weights = numpy_helper.from_array(_weights(channels, 1, 3, 3), "d")
    return network([node], {"x": (1, channels, size, size)}, [weights])


def signatures(model: onnx.ModelProto) -> list[tuple[Abi, str]]:
    """The kernels of a model on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        module = ingest(path, ModelFormat.ONNX, {}).graph.module
    abi = host_abi()
    return [(abi, kernel.signature) for kernel in kernels_of(module, host_target(abi))]
