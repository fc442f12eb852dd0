"""GROUPED_CONV_2D with computed weights: a long stack of products, one a group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.graph.graph import dtype_of


class StackedProduct(Operation):
    """relax.nn.conv2d of NHWC data and computed weights of one pixel, turned from OHWI to HWIO."""

    name = "GROUPED_CONV_2D"

    def patterns(self) -> Iterator[Pattern]:
        data, weight = wildcard(), wildcard()
        permute = is_op("relax.permute_dims")(weight)
        root = is_op("relax.nn.conv2d")(data, permute)
        yield Pattern(root, {"data": data, "weight": weight, "permute": permute, "conv": root})

    def fits(self, site: Site) -> bool:
        axes, attrs = site["permute"].attrs.axes, site["conv"].attrs
        is_turned = axes is not None and [int(a) for a in axes] == [1, 2, 3, 0]
        return is_turned and int(attrs.groups) > 1 and attrs.data_layout == "NHWC"

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"], site["weight"]])
        if rejection is not None:
            return rejection
        if site.shape("weight")[1:3] != (1, 1):
            return unsupported("dynamic_weights", f"{self.name} needs constant weights.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        zero, one = builder.int32(0), builder.int32(1)
        units = site.output_shape[3]
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter=builder.operand(site["weight"]),
            bias=builder.constant(np.zeros(units, dtype_of(site.output))),
            pad_left=zero,
            pad_right=zero,
            pad_top=zero,
            pad_bottom=zero,
            stride_width=one,
            stride_height=one,
            groups=builder.int32(int(site["conv"].attrs.groups)),
            activation=zero,
            nchw=builder.bool(False),
        )


OPERATIONS = (StackedProduct(),)
