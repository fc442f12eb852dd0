"""QUANTIZE and DEQUANTIZE: where real numbers and quantized ones meet."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.graph.graph import constant_value
from workers.graph.quantization import DEQUANTIZE, QUANTIZE


class Conversion(Operation):
    """One step between real numbers and integers; the operand carries scale and zero point."""

    computes = False

    def __init__(self, name: str, relax_op: str) -> None:
        self.name = name
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op(self._relax_op)(data, wildcard(), wildcard())
        yield Pattern(root, {"data": data, "step": root})

    def check(self, site: Site) -> Rejection | None:
        if constant_value(site["data"]) is not None:
            return unsupported("constant", "A quantized constant is part of what reads it.")
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(self.name, builder.output(site.output), input=builder.operand(site["data"]))


OPERATIONS = (Conversion("QUANTIZE", QUANTIZE), Conversion("DEQUANTIZE", DEQUANTIZE))
