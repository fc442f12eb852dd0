"""Small models quantized by ONNX Runtime's own tool: QDQ form as users have it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tests.workers.onnx_models import make_model, single, weights

IMAGE = {"x": [1, 4, 8, 8]}


class _Drawn(CalibrationDataReader):  # type: ignore[misc]
    """Eight draws of every input."""

    def __init__(self, model: onnx.ModelProto) -> None:
        generator = np.random.default_rng(3)
        self._left = [inputs_of(model, generator) for _ in range(8)]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


def inputs_of(model: onnx.ModelProto, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal values for every input of a float model."""
    return {
        value.name: generator.standard_normal(
            [d.dim_value for d in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in model.graph.input
    }


def quantized(
    model: onnx.ModelProto, folder: Path, dtype: str, per_channel: bool
) -> onnx.ModelProto:
    """A float model in QDQ form.

    Args:
        model: float32.
        folder: for the two files.
        dtype: of activations and weights, "int8" or "uint8".
        per_channel: whether weights have a scale for each output channel.
    """
    source, target = folder / "float.onnx", folder / "qdq.onnx"
    onnx.save(model, source)
    kind = QuantType.QInt8 if dtype == "int8" else QuantType.QUInt8
    quantize_static(
        source,
        target,
        _Drawn(model),
        quant_format=QuantFormat.QDQ,
        activation_type=kind,
        weight_type=kind,
        per_channel=per_channel,
    )
    return onnx.load(target)


def _then_relu(node: onnx.NodeProto, constants: dict[str, np.ndarray]) -> onnx.ModelProto:
    node.output[0] = "t"
    relu = helper.make_node("Relu", ["t"], ["y"], name="relu")
    return make_model([node, relu], IMAGE, ["y"], constants)


def _conv(name: str, group: int, *shape: int, **attributes: object) -> onnx.ModelProto:
    names = ["x", "w", "b"]
    node = helper.make_node("Conv", names, ["y"], name=name, group=group, **attributes)
    constants = {"w": weights(*shape), "b": weights(shape[0], seed=1)}
    return make_model([node], IMAGE, ["y"], constants)


def _after_add(
    op: str,
    more: dict[str, list[int]] | None = None,
    constants: dict[str, np.ndarray] | None = None,
    **attributes: object,
) -> onnx.ModelProto:
    """x + x, and then an operation that alone would not be worth a call."""
    names = ["t", *(more or {}), *(constants or {})]
    nodes = [
        helper.make_node("Add", ["x", "x"], ["t"], name="add"),
        helper.make_node(op, names, ["y"], name=op.lower(), **attributes),
    ]
    return make_model(nodes, {**IMAGE, **(more or {})}, ["y"], constants)


_BOUNDS = {n: np.array([v], np.int64) for n, v in zip("beas", (1, 3, 1, 1), strict=True)}


def float_models() -> dict[str, onnx.ModelProto]:
    """Models whose every operation has a quantized form, by name."""
    gemm = single("Gemm", {"x": [2, 6]}, {"w": weights(6, 5), "b": weights(5, seed=1)})
    two = {"x": [1, 4, 8, 8], "z": [1, 4, 8, 8]}
    return {
        "conv": _conv("conv", 1, 6, 4, 3, 3, pads=[1, 1, 1, 1]),
        "conv_stride": _conv("conv", 1, 6, 4, 3, 1, strides=[2, 1]),
        "conv_dilation": _conv("conv", 1, 6, 4, 3, 3, dilations=[2, 2]),
        "conv_relu": _then_relu(
            helper.make_node("Conv", ["x", "w"], ["y"], name="conv"), {"w": weights(6, 4, 3, 3)}
        ),
        "depthwise": _conv("conv", 4, 4, 1, 3, 3),
        "grouped": _conv("conv", 2, 6, 2, 3, 3),
        "gemm": gemm,
        "add": single("Add", two),
        "mul": single("Mul", two),
        "concat": _after_add("Concat", {"z": [1, 4, 8, 8]}, axis=1),
        "max_pool": _after_add("MaxPool", kernel_shape=[3, 3], strides=[2, 2]),
        "reshape": _after_add("Reshape", constants={"s": np.array([4, 64], np.int64)}),
        "transpose": _after_add("Transpose", perm=[0, 3, 1, 2]),
        "conv_transpose": single(
            "ConvTranspose", IMAGE, {"w": weights(4, 6, 3, 3), "b": weights(6)}, strides=[2, 2]
        ),
        "pad": _after_add("Pad", constants={"p": np.array([0, 0, 1, 1, 0, 0, 2, 0], np.int64)}),
        "resize": _after_add(
            "Resize",
            constants={"r": np.zeros(0, np.float32), "s": np.array([1, 1, 2, 2], np.float32)},
            mode="nearest",
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        ),
        "split": _after_add("Slice", constants=_BOUNDS),
        "gather": _after_add("Gather", constants={"i": np.array([2, 0], np.int64)}, axis=1),
        "layer_norm": single(
            "LayerNormalization", {"x": [2, 6]}, {"s": weights(6), "b": weights(6)}
        ),
        "sigmoid": single("Sigmoid", {"x": [2, 6]}),
        "softmax": single("Softmax", {"x": [2, 6]}),
    }
