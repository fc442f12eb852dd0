"""Sliding windows of ONNX operations: padding schemes, and convolutions built from integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, text
from workers.graph.graph import dtype_of, static_shape


def explicit_pads(
    attrs: dict[str, Any], spatial: Sequence[int], kernel: Sequence[int]
) -> tuple[int, ...]:
    """Begins, then ends, of a window's padding, whatever the scheme."""
    ones = (1,) * len(spatial)
    scheme = text(attrs, "auto_pad", "NOTSET")
    none = (0,) * 2 * len(spatial)
    if scheme == "VALID":
        return none
    if scheme == "NOTSET":
        return tuple(attrs.get("pads", none))
    strides, dilations = attrs.get("strides", ones), attrs.get("dilations", ones)
    begin, end = [], []
    for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        begin.append(small if scheme == "SAME_UPPER" else large)
        end.append(large if scheme == "SAME_UPPER" else small)
    return tuple(begin + end)


def _explicit(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """auto_pad becomes explicit pads, in place; TVM's converter then does the rest."""
    del scope
    if text(attrs, "auto_pad", "NOTSET") not in ("SAME_UPPER", "SAME_LOWER"):
        return None
    data_shape = static_shape(inputs[0])
    kernel = attrs.get("kernel_shape")
    if kernel is None and len(inputs) > 1:
        weight_shape = static_shape(inputs[1])
        kernel = weight_shape[2:] if weight_shape is not None else None
    if data_shape is None or kernel is None:
        return None
    attrs["pads"] = explicit_pads(attrs, data_shape[2:], kernel)
    attrs["auto_pad"] = b"NOTSET"
    return None


def conv(
    data: relax.Expr,
    weight: relax.Expr,
    bias: relax.Expr | None,
    data_shape: tuple[int, ...] | None,
    weight_shape: tuple[int, ...] | None,
    attrs: dict[str, Any],
) -> relax.Expr:
    """A convolution of one or two dimensions in NCHW, with the attributes of ONNX's Conv."""
    if data_shape is None or weight_shape is None or len(data_shape) not in (3, 4):
        raise ValueError("only convolutions of one or two dimensions and known shape")
    kernel = weight_shape[2:]
    one_dimension = len(kernel) == 1
    function = relax.op.nn.conv1d if one_dimension else relax.op.nn.conv2d
    ones = (1,) * len(kernel)
    value = function(
        data,
        weight,
        strides=tuple(attrs.get("strides", ones)),
        padding=explicit_pads(attrs, data_shape[2:], kernel),
        dilation=tuple(attrs.get("dilations", ones)),
        groups=attrs.get("group", 1),
    )
    if bias is None:
        return value
    return relax.op.add(value, relax.op.reshape(bias, (1, weight_shape[0], *ones)))


def pool(
    function: Callable[..., relax.Expr],
    data: relax.Expr,
    data_shape: tuple[int, ...] | None,
    attrs: dict[str, Any],
) -> relax.Expr:
    """A pool of two dimensions in NCHW, with the attributes of ONNX's AveragePool."""
    kernel = tuple(attrs["kernel_shape"])
    if data_shape is None or len(kernel) != 2:
        raise ValueError("only pools of two dimensions and known shape")
    return function(
        data,
        pool_size=kernel,
        strides=tuple(attrs.get("strides", (1, 1))),
        padding=explicit_pads(attrs, data_shape[2:], kernel),
        ceil_mode=bool(attrs.get("ceil_mode", 0)),
        count_include_pad=bool(attrs.get("count_include_pad", 0)),
    )


def _local_response(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """X / (bias + alpha / size * the sum of neighbouring channels' squares) ** beta.

    The sum is a convolution of one pixel with a band of equal weights; TVM's own converter makes a
    three-dimensional pool of it, which no accelerator has.
    """
    data, shape = inputs[0], static_shape(inputs[0])
    if shape is None or len(shape) != 4 or dtype_of(data) != "float32":
        return None
    size, channels = int(attrs["size"]), np.arange(shape[1])
    offset = channels[None, :] - channels[:, None]
    is_near = (offset >= -((size - 1) // 2)) & (offset <= size // 2)
    band = np.where(is_near, np.float32(attrs.get("alpha", 1e-4) / size), np.float32(0))
    squares = scope.emit(relax.op.multiply(data, data))
    weights = relax.const(band.reshape(*band.shape, 1, 1))
    total = scope.emit(relax.op.nn.conv2d(squares, weights))
    biased = scope.emit(relax.op.add(total, relax.const(np.float32(attrs.get("bias", 1.0)))))
    exponent = relax.const(np.float32(attrs.get("beta", 0.75)))
    return relax.op.divide(data, scope.emit(relax.op.power(biased, exponent)))


def _transposed(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """An output_shape becomes the pads that give it, in place; TVM's converter does the rest."""
    del scope
    wanted, data_shape, weight_shape = (
        attrs.pop("output_shape", None), static_shape(inputs[0]), static_shape(inputs[1]),
    )  # fmt: skip
    if wanted is None or data_shape is None or weight_shape is None:
        return None
    rank = len(data_shape) - 2
    ones = (1,) * rank
    strides, dilations = attrs.get("strides", ones), attrs.get("dilations", ones)
    extra = list(attrs.get("output_padding", (0,) * rank))
    is_upper = text(attrs, "auto_pad", "NOTSET") == "SAME_UPPER"
    begin, end = [], []
    for axis, size in enumerate(wanted[-rank:]):
        reach = (weight_shape[2 + axis] - 1) * dilations[axis] + 1
        full = strides[axis] * (data_shape[2 + axis] - 1) + extra[axis] + reach
        total = max(full - size, 0)
        extra[axis] += max(size - full, 0)
        first = total // 2 if is_upper else total - total // 2
        begin.append(first)
        end.append(total - first)
    attrs["pads"], attrs["output_padding"] = begin + end, extra
    attrs["auto_pad"] = b"NOTSET"
    return None


CONVERTERS: dict[str, Converter] = {
    "AveragePool": _explicit,
    "Conv": _explicit,
    "ConvTranspose": _transposed,
    "LRN": _local_response,
    "MaxPool": _explicit,
}
"""By ONNX operation name."""
