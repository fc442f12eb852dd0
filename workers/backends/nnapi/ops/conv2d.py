"""CONV_2D: relax.nn.conv2d with one group."""

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
    level_of,
    window_of_site,
    window_roles,
)
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class Conv2d(Operation):
    """Weights go from HWIO to NNAPI's [out, height, width, in]."""

    name = "CONV_2D"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        yield from convolution_patterns()

    def fits(self, site: Site) -> bool:
        return group_count(site) == 1

    def check(self, site: Site) -> Rejection | None:
        return check_convolution(site, self.name)

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        window = window_of_site(site)
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter=filter_operand(site, builder, (3, 0, 1, 2)),
            bias=bias_operand(site, builder),
            activation=builder.int32(site.activation or Activation.NONE),
            level=level_of(window),
            **window_roles(window, builder),
        )


OPERATIONS = (Conv2d(),)
