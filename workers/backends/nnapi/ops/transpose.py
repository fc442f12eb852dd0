"""TRANSPOSE by a constant permutation."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class Transpose(Operation):
    """relax.permute_dims; without axes it reverses them."""

    name = "TRANSPOSE"
    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op("relax.permute_dims")(data)
        yield Pattern(root, {"data": data, "permute": root})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        axes, rank = site["permute"].attrs.axes, len(site.shape("data"))
        order = range(rank)[::-1] if axes is None else [int(a) % rank for a in axes]
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            permutation=builder.int32s(list(order)),
        )


OPERATIONS = (Transpose(),)
