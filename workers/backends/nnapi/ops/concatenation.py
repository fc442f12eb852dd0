"""CONCATENATION of any number of tensors."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.model import ModelBuilder
from workers.backends.nnapi.operation import Operation, Pattern, Site, check_tensors, unsupported


class Concatenation(Operation):
    """relax.concat of a literal tuple."""

    name = "CONCATENATION"
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        items = wildcard()
        root = is_op("relax.concat")(items)
        yield Pattern(root, {"items": items, "concat": root})

    def check(self, site: Site) -> Rejection | None:
        items = site["items"]
        if not isinstance(items, relax.Tuple):
            return unsupported("tuple", "CONCATENATION needs its inputs one by one.")
        return check_tensors(site, self.name, list(items.fields))

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        axis = int(site["concat"].attrs.axis or 0) % len(site.output_shape)
        operands = [builder.operand(item) for item in site["items"].fields]
        output = builder.output(site.output)
        builder.add(self.name, output, *operands, axis=builder.int32(axis))


OPERATIONS = (Concatenation(),)
