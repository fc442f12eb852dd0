"""DEPTHWISE_CONV_2D: relax.nn.conv2d with one group a channel."""

from __future__ import annotations

from collections.abc import Iterator

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.convolution import (
    bias_operand,
    check_convolution,
    convolution_patterns,
    filter_operand,
    is_depthwise,
    level_of,
    window_of_site,
    window_roles,
)
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class DepthwiseConv2d(Operation):
    """Weights [height, width, 1, out] are NNAPI's [1, height, width, out] as they lie.

    Output channel c * multiplier + m comes from input channel c, in Relax and in NNAPI.
    """

    name = "DEPTHWISE_CONV_2D"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        yield from convolution_patterns()

    def fits(self, site: Site) -> bool:
        return is_depthwise(site)

    def check(self, site: Site) -> Rejection | None:
        return check_convolution(site, self.name)

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        window = window_of_site(site)
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter=filter_operand(site, builder, None),
            bias=bias_operand(site, builder),
            depth_multiplier=builder.int32(site.output_shape[-1] // site.shape("data")[-1]),
            activation=builder.int32(site.activation or Activation.NONE),
            level=level_of(window),
            **window_roles(window, builder),
        )


OPERATIONS = (DepthwiseConv2d(),)
