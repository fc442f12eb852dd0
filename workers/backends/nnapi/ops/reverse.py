"""REVERSE: relax.flip; before it came, a slice that goes backwards does the same."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.backends.nnapi.opset import opset
from workers.backends.nnapi.slicing import add_slice


class Reverse(Operation):
    """NNAPI reverses one axis, as relax.flip does."""

    name = "REVERSE"
    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op("relax.flip")(data)
        yield Pattern(root, {"data": data, "flip": root})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self._name_at(site), [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        axis = int(site["flip"].attrs.axis) % len(site.shape("data"))
        source, output = builder.operand(site["data"]), builder.output(site.output)
        if self._name_at(site) == self.name:
            builder.add(self.name, output, input=source, axes=builder.int32s([axis]))
        else:
            add_slice(builder, source, output, {axis: slice(None, None, -1)})

    def _name_at(self, site: Site) -> str:
        is_there = site.feature_level >= opset()[self.name].level
        return self.name if is_there else "STRIDED_SLICE"


OPERATIONS = (Reverse(),)
