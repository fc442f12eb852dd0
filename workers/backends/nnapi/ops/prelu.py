"""PRELU with a constant or computed slope."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.model import ModelBuilder
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    Site,
    check_tensors,
    unsupported,
)


class PRelu(Operation):
    """relax.nn.prelu: one slope a channel, broadcast as NNAPI does it from the last axis."""

    name = "PRELU"

    def patterns(self) -> Iterator[Pattern]:
        data, slope = wildcard(), wildcard()
        root = is_op("relax.nn.prelu")(data, slope)
        yield Pattern(root, {"data": data, "slope": slope, "prelu": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        slope, shape = site.constant("slope"), site.shape("data")
        axis = int(site["prelu"].attrs.axis) % len(shape)
        if slope is None or slope.size not in (1, shape[axis]):
            return unsupported("slope", "PRELU needs a constant slope, one or one a channel.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        slope, shape = site.constant("slope"), site.shape("data")
        assert slope is not None  # check asked
        dims = [1] * len(shape)
        dims[int(site["prelu"].attrs.axis) % len(shape)] = slope.size
        source = builder.operand(site["data"])
        alpha = builder.constant(np.reshape(slope, dims))
        builder.add(self.name, builder.output(site.output), input=source, alpha=alpha)


OPERATIONS = (PRelu(),)
