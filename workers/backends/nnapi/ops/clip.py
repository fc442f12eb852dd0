"""relax.clip: RELU6 or RELU1 where the bounds are theirs, else MAXIMUM and MINIMUM."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import (
    CLIPS,
    Operation,
    Pattern,
    QuantizedForm,
    Site,
    clip_bounds,
)
from workers.graph.graph import dtype_of


def _clip_pattern() -> Pattern:
    data = wildcard()
    clip = is_op("relax.clip")(data, wildcard(), wildcard())
    return Pattern(clip, {"data": data, "clip": clip})


class Clip(Operation):
    """One RELU* operation, or a composition from level 3 that is exact for any bounds."""

    name = "MINIMUM"
    quantized = QuantizedForm(is_as_input=True)

    def patterns(self) -> Iterator[Pattern]:
        yield _clip_pattern()

    def check(self, site: Site) -> Rejection | None:
        activation = CLIPS.get(clip_bounds(site["clip"]))
        if activation is None and site.takes_integers:
            return unsupported("quantization", "NNAPI clips integers at 0, 6, and -1 to 1 only.")
        name = activation.name if activation is not None else self.name
        return check_tensors(site, name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        low, high = clip_bounds(site["clip"])
        activation = CLIPS.get((low, high))
        value, output = builder.operand(site["data"]), builder.output(site.output)
        if activation is not None:
            builder.add(activation.name, output, input=value)
            return
        dtype = dtype_of(site.output)
        if not math.isinf(high):
            clipped = output if math.isinf(low) else builder.temporary(site.output_shape, dtype)
            bound = builder.constant(np.array([high], dtype))
            builder.add("MINIMUM", clipped, lhs=value, rhs=bound)
            value = clipped
        if not math.isinf(low) or math.isinf(high):
            bound = builder.constant(np.array([low], dtype))
            builder.add("MAXIMUM", output, lhs=value, rhs=bound)


OPERATIONS = (Clip(),)
