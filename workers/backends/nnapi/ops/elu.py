"""ELU, which the importer of TFLite writes out; before level 4 it stays so."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.backends.nnapi.opset import opset


class Elu(Operation):
    """relu(x) + (exp(min(x, 0)) - 1): the positive part and, below 0, the curve."""

    name = "ELU"

    def patterns(self) -> Iterator[Pattern]:
        data, zero, one = wildcard(), wildcard(), wildcard()
        below = is_op("relax.minimum")(data, zero)
        power = is_op("relax.exp")(below)
        curve = is_op("relax.subtract")(power, one)
        above = is_op("relax.nn.relu")(data)
        root = is_op("relax.add")(above, curve)
        inner = {"below": below, "exp": power, "curve": curve, "above": above}
        yield Pattern(root, {"data": data, "zero": zero, "one": one, **inner})

    def fits(self, site: Site) -> bool:
        is_there = site.feature_level >= opset()[self.name].level
        return is_there and _is_all(site, "zero", 0.0) and _is_all(site, "one", 1.0)

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        source = builder.operand(site["data"])
        builder.add(
            self.name,
            builder.output(site.output),
            input=source,
            alpha=builder.real(1.0, source),
        )


def _is_all(site: Site, part: str, value: float) -> bool:
    array = site.constant(part)
    return array is not None and bool((array == value).all())


OPERATIONS = (Elu(),)
