"""L2_NORMALIZATION along the last axis, which importers write out."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.graph.graph import static_shape

LEAST = 1e-6
"""Of the squares' sum; NNAPI has a least length of its own, a millionth."""


class L2Normalization(Operation):
    """x / sqrt(max(sum(x * x), least)); of ranks other than 4 the pieces, before level 3."""

    name = "L2_NORMALIZATION"
    quantized = QuantizedForm(fixed=(1 / 128, 128))

    def patterns(self) -> Iterator[Pattern]:
        data, again, least = wildcard(), wildcard(), wildcard()
        squares = is_op("relax.multiply")(again, again)
        total = is_op("relax.sum")(squares)
        bounded = is_op("relax.maximum")(total, least)
        length = is_op("relax.sqrt")(bounded)
        root = is_op("relax.divide")(data, length)
        inner = {"squares": squares, "sum": total, "bounded": bounded, "length": length}
        yield Pattern(root, {"data": data, "again": again, "least": least, **inner})

    def fits(self, site: Site) -> bool:
        least, attrs, shape = site.constant("least"), site["sum"].attrs, static_shape(site["data"])
        if least is None or shape is None or not 0 < least.max() <= LEAST:
            return False
        # Quantized, each reader of the data has a dequantize of its own.
        if attrs.axis is None or not attrs.keepdims or not site.is_same("data", "again"):
            return False
        is_last = [int(axis) % len(shape) for axis in attrs.axis] == [len(shape) - 1]
        return is_last and (len(shape) == 4 or site.feature_level >= 3)

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        shape = site.shape("data")
        axis = {} if len(shape) == 4 else {"axis": builder.int32(len(shape) - 1)}
        source = builder.operand(site["data"])
        builder.add(self.name, builder.output(site.output), input=source, **axis)


OPERATIONS = (L2Normalization(),)
