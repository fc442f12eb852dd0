"""L2_POOL_2D, which the importer of TFLite writes out as the root of an average of squares."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import Operation, Pattern, Site, with_activations
from workers.backends.nnapi.windows import window_of


class L2Pool(Operation):
    """Over NHWC images, padding left out of the average."""

    name = "L2_POOL_2D"

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        squares = is_op("relax.multiply")(data, data)
        pool = is_op("relax.nn.avg_pool2d")(squares)
        root = is_op("relax.sqrt")(pool)
        parts = {"data": data, "squares": squares, "pool": pool, "root": root}
        yield from with_activations(root, parts)

    def fits(self, site: Site) -> bool:
        attrs = site["pool"].attrs
        is_plain = attrs.layout == "NHWC" and not attrs.count_include_pad and not attrs.ceil_mode
        return is_plain and {int(step) for step in attrs.dilation} == {1}

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        height, width = (int(size) for size in site["pool"].attrs.pool_size)
        window = window_of(site["pool"], (height, width))
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter_width=builder.int32(width),
            filter_height=builder.int32(height),
            activation=builder.int32(site.activation or Activation.NONE),
            **{k: builder.int32(v) for k, v in (window.pads() | window.strides()).items()},
        )


OPERATIONS = (L2Pool(),)
