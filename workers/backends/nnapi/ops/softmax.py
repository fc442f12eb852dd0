"""SOFTMAX over one axis."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, needs_level
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site

AXIS_LEVEL = 3


class Softmax(Operation):
    """Levels 1 and 2 know the last axis of rank 2 and 4 only; other ranks are made 2-D."""

    name = "SOFTMAX"
    quantized = QuantizedForm(fixed=(1 / 256, 0))

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op("relax.nn.softmax")(data)
        yield Pattern(root, {"data": data, "softmax": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None or self._is_last_axis(site):
            return rejection
        return needs_level("SOFTMAX over an inner axis", AXIS_LEVEL, site.feature_level)

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        source, output = builder.operand(site["data"]), builder.output(site.output)
        beta = builder.real(1.0, source)
        shape = site.shape("data")
        if not self._is_last_axis(site):
            axis = builder.int32(int(site["softmax"].attrs.axis) % len(shape))
            builder.add(self.name, output, input=source, beta=beta, axis=axis, level=AXIS_LEVEL)
        elif len(shape) in (2, 4):
            builder.add(self.name, output, input=source, beta=beta)
        else:
            flat = (math.prod(shape[:-1]), shape[-1])
            result = builder.like(output, flat)
            builder.add(self.name, result, input=builder.reshape(source, flat), beta=beta)
            builder.reshape(result, shape, output)

    @staticmethod
    def _is_last_axis(site: Site) -> bool:
        rank = len(site.shape("data"))
        return int(site["softmax"].attrs.axis) % rank == rank - 1


OPERATIONS = (Softmax(),)
