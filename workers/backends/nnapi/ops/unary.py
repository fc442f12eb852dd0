"""Operations on one tensor, element by element."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class Unary(Operation):
    """One Relax operator that is one NNAPI operation."""

    def __init__(self, name: str, relax_op: str, quantized: QuantizedForm | None = None) -> None:
        self.name = name
        self.quantized = quantized
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        yield Pattern(is_op(self._relax_op)(data), {"data": data})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(self.name, builder.output(site.output), input=builder.operand(site["data"]))


OPERATIONS = (
    Unary("RELU", "relax.nn.relu", QuantizedForm(is_as_input=True)),
    Unary("LOGISTIC", "relax.sigmoid", QuantizedForm(fixed=(1 / 256, 0))),
    Unary("TANH", "relax.tanh", QuantizedForm(fixed=(1 / 128, 128))),
    Unary("FLOOR", "relax.floor"),
    Unary("EXP", "relax.exp"),
    Unary("LOG", "relax.log"),
    Unary("SQRT", "relax.sqrt"),
    Unary("RSQRT", "relax.rsqrt"),
    Unary("ABS", "relax.abs"),
    Unary("SIN", "relax.sin"),
    Unary("NEG", "relax.negative"),
    Unary("LOGICAL_NOT", "relax.logical_not"),
    Unary("CAST", "relax.astype"),
)
