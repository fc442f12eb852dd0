"""RESHAPE: every change of shape that moves no element (squeeze, flatten, expand_dims too)."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class Reshape(Operation):
    """The pipeline has turned squeeze, flatten and expand_dims into reshapes before."""

    name = "RESHAPE"
    quantized = QuantizedForm(is_as_input=True)
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        yield Pattern(is_op("relax.reshape")(data, wildcard()), {"data": data})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        source, output = builder.operand(site["data"]), builder.output(site.output)
        builder.reshape(source, site.output_shape, output)


OPERATIONS = (Reshape(),)
