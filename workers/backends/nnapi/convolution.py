"""What the three NNAPI convolutions have in common: pattern, bias, dilation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, needs_level, unsupported
from workers.backends.nnapi.operation import Pattern, Site, with_activations
from workers.backends.nnapi.weights import (
    check_quantized_weights,
    quantized_bias,
    quantized_weights,
)
from workers.backends.nnapi.windows import Window, window_of
from workers.graph.graph import dtype_of

DILATION_LEVEL = 3


def convolution_patterns() -> Iterator[Pattern]:
    """conv2d, with or without bias and activation."""
    data, weight, bias = wildcard(), wildcard(), wildcard()
    conv = is_op("relax.nn.conv2d")(data, weight)
    biased = is_op("relax.add")(conv, bias)
    parts = {"data": data, "weight": weight, "conv": conv}
    yield from with_activations(biased, {**parts, "bias": bias, "add": biased})
    yield from with_activations(conv, parts)


def group_count(site: Site) -> int:
    """Groups of the convolution."""
    return int(site["conv"].attrs.groups)


def is_depthwise(site: Site) -> bool:
    """Whether each group has one input channel (weights HWIO), and there are several."""
    weight = site.constant("weight")
    return group_count(site) > 1 and weight is not None and weight.shape[2] == 1


def window_of_site(site: Site) -> Window:
    """The convolution's window; weights are HWIO."""
    height, width = site.shape("weight")[:2]
    return window_of(site["conv"], (height, width))


def check_convolution(site: Site, name: str) -> Rejection | None:
    """Rules of CONV_2D, DEPTHWISE_CONV_2D and GROUPED_CONV_2D alike."""
    rejection = check_tensors(site, name, [site["data"]])
    if rejection is not None:
        return rejection
    attrs = site["conv"].attrs
    if site.constant("weight") is None:
        return unsupported("dynamic_weights", f"{name} needs constant weights.")
    if site.takes_integers:
        rejection = check_quantized_weights(site, name, channel_axis=3)
        if rejection is not None:
            return rejection
    if attrs.data_layout != "NHWC" or attrs.kernel_layout != "HWIO":
        return unsupported("layout", f"{name} is emitted for NHWC data only.")
    if "bias" in site and not _is_bias(site):
        return unsupported("bias", f"{name} takes one constant bias value a channel.")
    if window_of_site(site).is_dilated:
        return needs_level(f"{name} with dilation", DILATION_LEVEL, site.feature_level)
    return None


def _is_bias(site: Site) -> bool:
    bias, channels = site.constant("bias"), site.output_shape[-1]
    return bias is not None and bias.shape[-1:] == (channels,) and bias.size == channels


def window_roles(window: Window, builder: ModelBuilder) -> dict[str, int]:
    """Operands of the window's roles; dilation and the layout flag before it only where needed."""
    values = window.pads() | window.strides()
    roles = {name: builder.int32(value) for name, value in values.items()}
    if window.is_dilated:
        roles["nchw"] = builder.bool(False)
        roles["dilation_width"] = builder.int32(window.dilation_width)
        roles["dilation_height"] = builder.int32(window.dilation_height)
    return roles


def level_of(window: Window) -> int:
    """Least level of a window, beyond the operation's own."""
    return DILATION_LEVEL if window.is_dilated else 1


def filter_operand(site: Site, builder: ModelBuilder, order: Sequence[int] | None) -> int:
    """The weights HWIO in NNAPI's order; None: depthwise, [1, height, width, out]."""
    if site.takes_integers:
        weights = quantized_weights(site)
        height, width, _, channels = weights.array.shape
        moved = weights.transposed(order) if order is not None else None
        if moved is None:
            moved = weights.reshaped((1, height, width, channels))
        assert moved is not None  # the channels stay the last axis
        return builder.quantized_constant(moved.array, moved.quantization)
    weight = site.constant("weight")
    assert weight is not None  # check asked
    if order is None:
        return builder.constant(weight.reshape(1, *weight.shape[:2], weight.shape[3]))
    return builder.constant(np.transpose(weight, order))


def bias_operand(site: Site, builder: ModelBuilder) -> int:
    """The bias, zeros where the model has none: NNAPI's convolutions always take one."""
    channels = site.output_shape[-1]
    bias = site.constant("bias") if "bias" in site else None
    values = np.zeros(channels, np.float32) if bias is None else bias.reshape(channels)
    if site.takes_integers:
        return quantized_bias(values, site, builder)
    return builder.constant(values.astype(dtype_of(site.output), copy=False))
