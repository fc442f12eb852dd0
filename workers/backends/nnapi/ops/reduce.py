"""Reductions over any axes."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class Reduce(Operation):
    """MEAN takes keep_dims as an INT32, the others as a BOOL."""

    def __init__(self, name: str, relax_op: str, quantized: QuantizedForm | None = None) -> None:
        self.name = name
        self.quantized = quantized
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op(self._relax_op)(data)
        yield Pattern(root, {"data": data, "reduce": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        axes = site["reduce"].attrs.axis
        if rejection is None and axes is not None and not len(axes):
            return unsupported("axes", f"{self.name} without axes is nothing to do.")
        return rejection

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        attrs, rank = site["reduce"].attrs, len(site.shape("data"))
        axes = range(rank) if attrs.axis is None else [int(a) % rank for a in attrs.axis]
        keep = bool(attrs.keepdims)
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            axes=builder.int32s(sorted(axes)),
            keep_dims=builder.int32(keep) if self.name == "MEAN" else builder.bool(keep),
        )


OPERATIONS = (
    Reduce("MEAN", "relax.mean", QuantizedForm(is_as_input=True)),
    Reduce("REDUCE_SUM", "relax.sum"),
    Reduce("REDUCE_PROD", "relax.prod"),
    Reduce("REDUCE_MAX", "relax.max", QuantizedForm(is_as_input=True)),
    Reduce("REDUCE_MIN", "relax.min", QuantizedForm(is_as_input=True)),
)
