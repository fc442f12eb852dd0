"""ARGMAX and ARGMIN. NNAPI gives int32, so `prepare` puts a cast to int32 behind the model's."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.graph.graph import dtype_of


class Arg(Operation):
    """The first extreme along an axis; Relax keeps the axis on request, NNAPI never does."""

    quantized = QuantizedForm(gives_plain=True)

    def __init__(self, name: str, relax_op: str) -> None:
        self.name = name
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        arg = is_op(self._relax_op)(data)
        root = is_op("relax.astype")(arg)
        yield Pattern(root, {"data": data, "arg": arg})

    def check(self, site: Site) -> Rejection | None:
        if site["arg"].attrs.axis is None:
            return unsupported("axes", f"{self.name} needs an axis.")
        if dtype_of(site.output) != "int32":
            return unsupported("dtype", f"{self.name} gives int32.")
        if not site.output_shape:
            return unsupported("rank", f"{self.name} has no result without dimensions.")
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        shape, output = site.shape("data"), builder.output(site.output)
        axis = int(site["arg"].attrs.axis) % len(shape)
        reduced = (*shape[:axis], *shape[axis + 1 :]) or (1,)  # NNAPI has no rank 0
        result = output if site.output_shape == reduced else builder.temporary(reduced, "int32")
        source = builder.operand(site["data"])
        builder.add(self.name, result, input=source, axis=builder.int32(axis))
        if result != output:
            builder.add("EXPAND_DIMS", output, input=result, axis=builder.int32(axis))


OPERATIONS = (Arg("ARGMAX", "relax.argmax"), Arg("ARGMIN", "relax.argmin"))
