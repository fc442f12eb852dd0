"""Quantized weights and biases as NNAPI's convolutions and FULLY_CONNECTED take them.

Rules from NeuralNetworksTypes.h, CONV_2D: the filter is quantized like the input, or int8 about
zero with a scale for each output channel (feature level 3); the bias is int32 with the product of
both scales; before level 3 that product must be below the output's scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import needs_level, unsupported
from workers.backends.nnapi.operation import Site
from workers.graph.quantization import Quantization, QuantizedConstant

PER_CHANNEL_LEVEL = 3
FREE_SCALE_LEVEL = 3


def check_quantized_weights(site: Site, name: str, channel_axis: int) -> Rejection | None:
    """The rules for part "weight" of a site that takes integers.

    Args:
        site: its parts "data" and "weight", and "bias" if any, are quantized or constant.
        name: the operation, for the sentence.
        channel_axis: axis of the weight that holds the output channels.
    """
    numbers, data = site.quantization(site["weight"]), site.quantization(site["data"])
    output = site.quantization(site.output)
    if numbers is None or data is None or output is None or site.integers("weight") is None:
        return unsupported("quantization", f"{name} needs quantized weights with constant scales.")
    if not numbers.is_per_tensor:
        rejection = _check_channels(numbers, name, channel_axis, site.feature_level)
        if rejection is not None:
            return rejection
    product = data.scale * max(numbers.scales)
    if product >= output.scale:
        rejection = needs_level(
            f"{name} with an output scale not above input scale times weight scale",
            FREE_SCALE_LEVEL,
            site.feature_level,
        )
        if rejection is not None:
            return rejection
    return _check_bias(site, data.scale, numbers, name)


def _check_channels(
    numbers: Quantization, name: str, channel_axis: int, level: int
) -> Rejection | None:
    if numbers.axis != channel_axis:
        return unsupported("quantization", f"{name} has scales for output channels only.")
    middle = 128 if numbers.dtype == "uint8" else 0
    if any(zero != middle for zero in numbers.zero_points):
        return unsupported("quantization", f"{name} with scales by channel needs zero point 0.")
    return needs_level(f"{name} with weight scales by channel", PER_CHANNEL_LEVEL, level)


def _check_bias(site: Site, scale: float, numbers: Quantization, name: str) -> Rejection | None:
    bias = site.constant("bias") if "bias" in site else None
    if bias is None:
        return None
    steps = _bias_steps(bias.reshape(-1), scale, numbers)
    if np.abs(steps).max(initial=0) > np.iinfo(np.int32).max:
        return unsupported("bias", f"{name} has a bias that is too large for its scale.")
    return None


def quantized_weights(site: Site) -> QuantizedConstant:
    """The integers of part "weight", signed about zero where each channel has its scale."""
    array, numbers = site.integers("weight"), site.quantization(site["weight"])
    assert array is not None  # check_quantized_weights asked
    assert numbers is not None
    if numbers.is_per_tensor or numbers.dtype == "int8":
        return QuantizedConstant(array, numbers)
    signed = (array.astype(np.int16) - 128).astype(np.int8)
    zeros = (0,) * len(numbers.scales)
    return QuantizedConstant(signed, Quantization("int8", numbers.scales, zeros, numbers.axis))


def quantized_bias(values: NDArray[Any], site: Site, builder: ModelBuilder) -> int:
    """A bias of real values as int32 with the scale NNAPI wants: input times weight.

    A model's own int32 bias has that scale already and comes out as it went in.
    """
    numbers, data = site.quantization(site["weight"]), site.quantization(site["data"])
    assert numbers is not None  # check_quantized_weights asked
    assert data is not None
    steps = _bias_steps(values, data.scale, numbers).astype(np.int32)
    scale = float(np.float32(data.scale) * np.float32(numbers.scales[0]))
    scales = (scale,) if numbers.is_per_tensor else (1.0,) * len(steps)
    axis = None if numbers.is_per_tensor else 0
    zeros = (0,) * len(scales)
    return builder.quantized_constant(steps, Quantization("int32", scales, zeros, axis))


def _bias_steps(values: NDArray[Any], scale: float, numbers: Quantization) -> NDArray[np.float64]:
    steps: NDArray[np.float64] = np.rint(
        values.astype(np.float64) / (scale * np.array(numbers.scales, np.float64))
    )
    return steps
