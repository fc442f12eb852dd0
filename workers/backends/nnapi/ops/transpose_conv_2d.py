"""TRANSPOSE_CONV_2D: relax.nn.conv2d_transpose between two layout changes, on NHWC images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm import relax
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
    check_quantized_weights,
    quantized_bias,
    quantized_weights,
)
from workers.graph.graph import dtype_of


class TransposeConv2d(Operation):
    """Output padding is less padding at the end: the same rows and columns are cut off."""

    name = "TRANSPOSE_CONV_2D"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        data, weight, bias = wildcard(), wildcard(), wildcard()
        first = is_op("relax.permute_dims")(data)
        conv = is_op("relax.nn.conv2d_transpose")(first, weight)
        last = is_op("relax.permute_dims")(conv)
        biased = is_op("relax.add")(last, bias)
        parts = {"data": data, "weight": weight, "first": first, "conv": conv, "last": last}
        yield from with_activations(biased, {**parts, "bias": bias, "add": biased})
        yield from with_activations(last, parts)
        alone = is_op("relax.nn.conv2d_transpose")(data, weight)
        yield Pattern(alone, {"data": data, "weight": weight, "conv": alone})

    def fits(self, site: Site) -> bool:
        changes = (("first", (0, 3, 1, 2)), ("last", (0, 2, 3, 1)))
        return all(name not in site or _axes(site[name]) == axes for name, axes in changes)

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        attrs, weight = site["conv"].attrs, site.constant("weight")
        if "first" not in site or weight is None or attrs.kernel_layout != "IOHW":
            return unsupported("dynamic_weights", f"{self.name} needs constant weights.")
        if site.takes_integers:
            rejection = check_quantized_weights(site, self.name, channel_axis=1)
            if rejection is not None:
                return rejection
        if int(attrs.groups) != 1 or any(int(d) != 1 for d in attrs.dilation):
            return unsupported("dilation", f"{self.name} has neither groups nor dilation.")
        if "bias" in site and not self._is_bias(site):
            return unsupported("bias", f"{self.name} takes one constant bias value a channel.")
        if min(self._pads(site)) < 0:
            return unsupported("padding", f"{self.name} would need negative padding.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        top, left, bottom, right = self._pads(site)
        strides = site["conv"].attrs.strides
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter=self._filter(site, builder),
            bias=self._bias(site, builder),
            pad_left=builder.int32(left),
            pad_right=builder.int32(right),
            pad_top=builder.int32(top),
            pad_bottom=builder.int32(bottom),
            stride_width=builder.int32(int(strides[1])),
            stride_height=builder.int32(int(strides[0])),
            activation=builder.int32(site.activation or Activation.NONE),
            nchw=builder.bool(False),
        )

    @staticmethod
    def _filter(site: Site, builder: ModelBuilder) -> int:
        order = (1, 2, 3, 0)
        if site.takes_integers:
            moved = quantized_weights(site).transposed(order)
            return builder.quantized_constant(moved.array, moved.quantization)
        weight = site.constant("weight")
        assert weight is not None  # check asked
        return builder.constant(np.transpose(weight, order))

    @staticmethod
    def _bias(site: Site, builder: ModelBuilder) -> int:
        bias, channels = site.constant("bias") if "bias" in site else None, site.output_shape[3]
        values = np.zeros(channels, np.float32) if bias is None else bias.reshape(channels)
        if site.takes_integers:
            return quantized_bias(values, site, builder)
        return builder.constant(values.astype(dtype_of(site.output), copy=False))

    @staticmethod
    def _pads(site: Site) -> tuple[int, int, int, int]:
        attrs = site["conv"].attrs
        top, left, bottom, right = (int(p) for p in attrs.padding)
        more = [int(p) for p in attrs.output_padding]
        return top, left, bottom - more[0], right - more[1]

    @staticmethod
    def _is_bias(site: Site) -> bool:
        bias, channels = site.constant("bias"), site.output_shape[3]
        if bias is None or bias.size != channels:
            return False
        return bias.shape[-1:] == (channels,)


def _axes(call: relax.Call) -> tuple[int, ...]:
    return () if call.attrs.axes is None else tuple(int(axis) for axis in call.attrs.axes)


OPERATIONS = (TransposeConv2d(),)
