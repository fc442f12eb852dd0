"""Converters of ours for ONNX operations that TVM's importer turns into opaque code.

Each gives the one Relax operation that says the same, so that it can be offloaded, or None where
the operands are not constant and TVM's own converter has to serve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape

Converter = Callable[[Sequence[relax.Expr | None], dict[str, Any], int], relax.Expr | None]


def _input(inputs: Sequence[relax.Expr | None], index: int) -> relax.Expr | None:
    return inputs[index] if index < len(inputs) else None


def _constant(inputs: Sequence[relax.Expr | None], index: int) -> NDArray[Any] | None:
    expr = _input(inputs, index)
    return constant_value(expr) if expr is not None else None


def _clip(
    inputs: Sequence[relax.Expr | None], attrs: dict[str, Any], opset: int
) -> relax.Expr | None:
    del attrs, opset
    bounds = []
    for index, default in ((1, -math.inf), (2, math.inf)):
        if _input(inputs, index) is None:
            bounds.append(default)
            continue
        value = _constant(inputs, index)
        if value is None:
            return None
        # ONNX leaves a NaN bound undefined; ONNX Runtime treats it as no bound.
        bounds.append(default if math.isnan(float(value)) else float(value))
    if not dtype_of(inputs[0]).startswith("float"):
        return None
    low, high = bounds
    if low == 0.0 and math.isinf(high):
        return relax.op.nn.relu(inputs[0])
    return relax.op.clip(inputs[0], low, high)


def _extremum(op: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Converter:
    def convert(
        inputs: Sequence[relax.Expr | None], attrs: dict[str, Any], opset: int
    ) -> relax.Expr | None:
        del attrs, opset
        result = inputs[0]
        for operand in inputs[1:]:
            result = op(result, operand)
        return result

    return convert


def _pad(
    inputs: Sequence[relax.Expr | None], attrs: dict[str, Any], opset: int
) -> relax.Expr | None:
    del opset
    mode = attrs.get("mode", b"constant").decode()
    pads = _constant(inputs, 1)
    shape = static_shape(inputs[0])
    if mode != "constant" or pads is None or shape is None:
        return None
    widths = np.zeros((len(shape), 2), np.int64)
    axes = _constant(inputs, 3)
    chosen = range(len(shape)) if axes is None else [int(a) % len(shape) for a in axes]
    for position, axis in enumerate(chosen):
        widths[axis] = pads[position], pads[position + len(pads) // 2]
    if (widths < 0).any():
        return None
    fill = _constant(inputs, 2)
    if _input(inputs, 2) is not None and fill is None:
        return None
    value = 0.0 if fill is None else float(fill.reshape(-1)[0])
    return relax.op.nn.pad(inputs[0], [int(w) for w in widths.reshape(-1)], "constant", value)


def _cast(
    inputs: Sequence[relax.Expr | None], attrs: dict[str, Any], opset: int
) -> relax.Expr | None:
    del opset
    source, target = inputs[0], helper.tensor_dtype_to_np_dtype(attrs["to"]).name
    if source is None or not isinstance(source.ty, relax.TensorType):
        return None
    floats = {"float32", "float16"}
    # Out-of-range and NaN to integer are undefined in ONNX; in range all runtimes truncate.
    if (dtype_of(source), target) in {("float32", "int32"), ("int32", "float32")}:
        return relax.op.astype(source, target)
    if dtype_of(source) in floats and target in floats:
        return relax.op.astype(source, target)
    return None


def _conv(
    inputs: Sequence[relax.Expr | None], attrs: dict[str, Any], opset: int
) -> relax.Expr | None:
    """auto_pad becomes explicit pads, in place; the importer then does the rest."""
    del opset
    auto_pad = attrs.get("auto_pad", b"NOTSET").decode()
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        return None
    data_shape = static_shape(inputs[0])
    kernel = attrs.get("kernel_shape")
    if kernel is None and len(inputs) > 1:
        weight_shape = static_shape(inputs[1])
        kernel = weight_shape[2:] if weight_shape is not None else None
    if data_shape is None or kernel is None:
        return None
    spatial = data_shape[2:]
    ones = (1,) * len(spatial)
    strides, dilations = attrs.get("strides", ones), attrs.get("dilations", ones)
    begin, end = [], []
    for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        upper = auto_pad == "SAME_UPPER"
        begin.append(small if upper else large)
        end.append(large if upper else small)
    attrs["auto_pad"] = b"NOTSET"
    attrs["pads"] = tuple(begin + end)
    return None


CONVERTERS: dict[str, Converter] = {
    "AveragePool": _conv,
    "Cast": _cast,
    "Clip": _clip,
    "Conv": _conv,
    "Max": _extremum(relax.op.maximum),
    "MaxPool": _conv,
    "Min": _extremum(relax.op.minimum),
    "Pad": _pad,
}
"""By ONNX operation name."""
