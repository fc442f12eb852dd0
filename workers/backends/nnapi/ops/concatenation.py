"""CONCATENATION of any number of tensors."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import (
    check_quantized_form,
    check_tensors,
    needs_level,
    unsupported,
)
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site

FREE_SCALES_LEVEL = 3
"""Before, every input has the output's scale and zero point (NeuralNetworksTypes.h)."""


class Concatenation(Operation):
    """relax.concat of a literal tuple."""

    name = "CONCATENATION"
    quantized = QuantizedForm()
    computes = False

    def patterns(self) -> Iterator[Pattern]:
        items = wildcard()
        root = is_op("relax.concat")(items)
        yield Pattern(root, {"items": items, "concat": root})

    def check(self, site: Site) -> Rejection | None:
        items = site["items"]
        if not isinstance(items, relax.Tuple):
            return unsupported("tuple", "CONCATENATION needs its inputs one by one.")
        rejection = check_tensors(site, self.name, list(items.fields))
        if rejection is not None or not site.takes_integers:
            return rejection
        if site.feature_level >= FREE_SCALES_LEVEL:
            return None
        if check_quantized_form(QuantizedForm(is_as_input=True), site, self.name) is None:
            return None
        what = "CONCATENATION of tensors with different scales"
        return needs_level(what, FREE_SCALES_LEVEL, site.feature_level)

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        axis = int(site["concat"].attrs.axis or 0) % len(site.output_shape)
        operands = [builder.operand(item) for item in site["items"].fields]
        output = builder.output(site.output)
        builder.add(self.name, output, *operands, axis=builder.int32(axis))


OPERATIONS = (Concatenation(),)
