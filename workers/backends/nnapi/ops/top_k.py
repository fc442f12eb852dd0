"""TOPK_V2: values or indices of a relax.topk, which `prepare` has taken apart."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.graph.graph import static_shape

_KINDS = ("values", "indices")


class TopK(Operation):
    """The largest along the last axis, in falling order; of equal ones the first comes first."""

    name = "TOPK_V2"
    quantized = QuantizedForm(is_as_input=True)

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op("relax.topk")(data)
        yield Pattern(root, {"data": data, "top": root})

    def fits(self, site: Site) -> bool:
        attrs, shape = site["top"].attrs, static_shape(site["data"])
        is_last = shape is not None and int(attrs.axis) % max(len(shape), 1) == len(shape) - 1
        return attrs.ret_type in _KINDS and bool(attrs.largest) and is_last

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        source = builder.operand(site["data"])
        k = builder.int32(site.output_shape[-1])
        wanted = _KINDS.index(site["top"].attrs.ret_type)
        earlier = builder.results_of(self.name, (source, k))
        if earlier is not None:  # one operation gives the model's values and its indices
            builder.alias(site.output, earlier[wanted])
            return
        own = builder.output(site.output)
        if wanted == 0:
            results = (own, builder.temporary(site.output_shape, "int32"))
        else:
            results = (builder.like(source, site.output_shape), own)
        builder.add(self.name, results, input=source, k=k)


OPERATIONS = (TopK(),)
