"""FULLY_CONNECTED: relax.matmul with a constant matrix, with or without bias."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    QuantizedForm,
    Site,
    with_activations,
)
from workers.backends.nnapi.weights import (
    PER_CHANNEL_LEVEL,
    check_quantized_weights,
    quantized_bias,
    quantized_weights,
)
from workers.graph.graph import dtype_of


def _has_channel_scales(site: Site) -> bool:
    numbers = site.quantization(site["weight"]) if site.takes_integers else None
    return numbers is not None and not numbers.is_per_tensor


class FullyConnected(Operation):
    """Weights [in, out] become [out, in]; data of higher rank goes through reshapes."""

    name = "FULLY_CONNECTED"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        data, weight, bias = wildcard(), wildcard(), wildcard()
        matmul = is_op("relax.matmul")(data, weight)
        biased = is_op("relax.add")(matmul, bias)
        parts = {"data": data, "weight": weight, "matmul": matmul}
        yield from with_activations(biased, {**parts, "bias": bias, "add": biased})
        yield from with_activations(matmul, parts)

    def fits(self, site: Site) -> bool:
        weight = site.constant("weight")
        return weight is not None and weight.ndim == 2

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        weight = site.constant("weight")
        assert weight is not None  # it fits
        if site.takes_integers:
            rejection = check_quantized_weights(site, self.name, channel_axis=1)
            if rejection is not None:
                return rejection
        if "bias" in site:
            bias, units = site.constant("bias"), weight.shape[1]
            if bias is None or bias.shape[-1:] != (units,) or bias.size != units:
                return unsupported("bias", "FULLY_CONNECTED takes one constant bias a unit.")
            if bias.ndim > len(site.shape("data")):
                return unsupported("bias", "The bias raises the rank of the result.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        weight = site.constant("weight")
        assert weight is not None  # check asked
        size, units = weight.shape
        shape, rows = site.shape("data"), math.prod(site.shape("data")[:-1])
        source, output = builder.operand(site["data"]), builder.output(site.output)
        inner: tuple[int, ...] = (rows, size)
        outer: tuple[int, ...] = (rows, units)
        if _has_channel_scales(site):
            inner, outer = (rows, 1, 1, size), (rows, 1, 1, units)
        result = output if site.output_shape == outer else builder.like(output, outer)
        if shape != inner:
            source = builder.reshape(source, inner)
        emit = self._convolution if _has_channel_scales(site) else self._fully_connected
        emit(site, builder, source, result)
        if result != output:
            builder.reshape(result, site.output_shape, output)

    def _fully_connected(self, site: Site, builder: ModelBuilder, source: int, result: int) -> None:
        builder.add(
            self.name,
            result,
            input=source,
            weights=self._weights(site, builder),
            bias=self._bias(site, builder),
            activation=builder.int32(site.activation or Activation.NONE),
        )

    def _convolution(self, site: Site, builder: ModelBuilder, source: int, result: int) -> None:
        """The same sums as a convolution of one pixel, which takes a scale for each unit."""
        weights = quantized_weights(site).transposed((1, 0))
        filters = weights.reshaped((weights.array.shape[0], 1, 1, weights.array.shape[1]))
        assert filters is not None  # the units stay the first axis
        zero, one = builder.int32(0), builder.int32(1)
        builder.add(
            "CONV_2D",
            result,
            input=source,
            filter=builder.quantized_constant(filters.array, filters.quantization),
            bias=self._bias(site, builder),
            pad_left=zero,
            pad_right=zero,
            pad_top=zero,
            pad_bottom=zero,
            stride_width=one,
            stride_height=one,
            activation=builder.int32(site.activation or Activation.NONE),
            level=PER_CHANNEL_LEVEL,
        )

    @staticmethod
    def _weights(site: Site, builder: ModelBuilder) -> int:
        if site.takes_integers:
            weights = quantized_weights(site).transposed((1, 0))
            return builder.quantized_constant(weights.array, weights.quantization)
        weight = site.constant("weight")
        assert weight is not None  # check asked
        return builder.constant(np.transpose(weight))

    @staticmethod
    def _bias(site: Site, builder: ModelBuilder) -> int:
        bias = site.constant("bias") if "bias" in site else None
        units = site.shape("weight")[1]
        values = np.zeros(units, np.float32) if bias is None else bias.reshape(units)
        if site.takes_integers:
            return quantized_bias(values, site, builder)
        return builder.constant(values.astype(dtype_of(site.output), copy=False))


OPERATIONS = (FullyConnected(),)
