"""TILE: relax.tile and relax.broadcast_to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.backends.nnapi.opset import opset
from workers.graph.graph import dtype_of


class Tile(Operation):
    """Repetitions for each axis; before TILE came, a float tensor is multiplied by ones."""

    name = "TILE"
    computes = False
    quantized = QuantizedForm(is_as_input=True)

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        yield Pattern(is_op("relax.tile")(data), {"data": data})
        other = wildcard()
        yield Pattern(is_op("relax.broadcast_to")(other, wildcard()), {"data": other})

    def check(self, site: Site) -> Rejection | None:
        if self._is_multiplied(site):
            return check_tensors(site, "MUL", [site["data"]])
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        shape, target = site.shape("data"), site.output_shape
        source, output = builder.operand(site["data"]), builder.output(site.output)
        if self._is_multiplied(site):
            ones = builder.constant(np.ones(target, dtype_of(site.output)))
            builder.add("MUL", output, lhs=source, rhs=ones, activation=builder.int32(0))
            return
        padded = (1,) * (len(target) - len(shape)) + shape
        if padded != shape:
            source = builder.reshape(source, padded)
        times = builder.int32s([t // s for s, t in zip(padded, target, strict=True)])
        builder.add(self.name, output, input=source, multiples=times)

    def _is_multiplied(self, site: Site) -> bool:
        """Whether every repeated axis has one element, so that ones spread it."""
        if site.feature_level >= opset()[self.name].level or site.takes_integers:
            return False
        shape, target = site.shape("data"), site.output_shape
        padded = (1,) * (len(target) - len(shape)) + shape
        is_spread = all(s in (1, t) for s, t in zip(padded, target, strict=True))
        return is_spread and dtype_of(site.output) == "float32"


OPERATIONS = (Tile(),)
