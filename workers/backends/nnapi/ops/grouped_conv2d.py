"""GROUPED_CONV_2D: relax.nn.conv2d with several groups of several channels."""

from __future__ import annotations

from collections.abc import Iterator

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.convolution import (
    bias_operand,
    check_convolution,
    convolution_patterns,
    filter_operand,
    group_count,
    is_depthwise,
    window_of_site,
    window_roles,
)
from workers.backends.nnapi.legality import unsupported
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class GroupedConv2d(Operation):
    """Weights go from HWIO to [out, height, width, in / groups]; there is no dilation."""

    name = "GROUPED_CONV_2D"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        yield from convolution_patterns()

    def fits(self, site: Site) -> bool:
        return group_count(site) > 1 and not is_depthwise(site)

    def check(self, site: Site) -> Rejection | None:
        rejection = check_convolution(site, self.name)
        if rejection is None and window_of_site(site).is_dilated:
            return unsupported("dilation", "GROUPED_CONV_2D has no dilation.")
        return rejection

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        window = window_of_site(site)
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter=filter_operand(site, builder, (3, 0, 1, 2)),
            bias=bias_operand(site, builder),
            groups=builder.int32(int(site["conv"].attrs.groups)),
            activation=builder.int32(site.activation or Activation.NONE),
            nchw=builder.bool(False),
            **window_roles(window, builder),
        )


OPERATIONS = (GroupedConv2d(),)
