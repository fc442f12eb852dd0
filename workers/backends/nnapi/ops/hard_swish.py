"""HARD_SWISH: x * relu6(x + 3) / 6, which exporters write out; before level 4 it stays so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import DFPattern, is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    QuantizedForm,
    Site,
    clip_bounds,
)
from workers.backends.nnapi.opset import opset


class HardSwish(Operation):
    """Two readers of one tensor: quantized, each has a dequantize of its own."""

    name = "HARD_SWISH"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        for name in ("relax.divide", "relax.multiply"):
            for is_first in (True, False):
                data, parts, cut = _cut()
                gate = is_op(name)(cut, parts["six"])
                root = is_op("relax.multiply")(*((data, gate) if is_first else (gate, data)))
                yield Pattern(root, {**parts, "last": gate})
            data, parts, cut = _cut()
            product = is_op("relax.multiply")(data, cut)
            root = is_op(name)(product, parts["six"])
            yield Pattern(root, {**parts, "product": product, "last": root})

    def fits(self, site: Site) -> bool:
        if site.feature_level < opset()[self.name].level or not site.is_same("data", "again"):
            return False
        divides = site["last"].op.name == "relax.divide"
        return (
            clip_bounds(site["clip"]) == (0.0, 6.0)
            and _is_all(site, "three", 3.0)
            and _is_all(site, "six", 6.0 if divides else 1 / 6)
        )

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        source = builder.operand(site["data"])
        builder.add(self.name, builder.output(site.output), input=source)


def _cut() -> tuple[DFPattern, dict[str, DFPattern], DFPattern]:
    """The tensor, the parts all ways to write it have, and relu6(x + 3)."""
    data, again, three = wildcard(), wildcard(), wildcard()
    shifted = is_op("relax.add")(again, three)
    cut = is_op("relax.clip")(shifted, wildcard(), wildcard())
    parts = {"data": data, "again": again, "three": three, "add": shifted, "clip": cut}
    return data, {**parts, "six": wildcard()}, cut


def _is_all(site: Site, part: str, value: float) -> bool:
    array = site.constant(part)
    return array is not None and bool(np.allclose(array, value, rtol=1e-6, atol=0))


OPERATIONS = (HardSwish(),)
