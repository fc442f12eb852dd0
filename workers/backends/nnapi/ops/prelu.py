"""PRELU with a constant or computed slope."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site


class PRelu(Operation):
    """relax.nn.prelu: one slope a channel, broadcast as NNAPI does it from the last axis."""

    name = "PRELU"
    quantized = QuantizedForm()

    def patterns(self) -> Iterator[Pattern]:
        data, slope = wildcard(), wildcard()
        root = is_op("relax.nn.prelu")(data, slope)
        yield Pattern(root, {"data": data, "slope": slope, "prelu": root})

    def check(self, site: Site) -> Rejection | None:
        tensors = [site["data"], *([site["slope"]] if site.takes_integers else [])]
        rejection = check_tensors(site, self.name, tensors)
        if rejection is not None:
            return rejection
        slope, shape = site.constant("slope"), site.shape("data")
        axis = int(site["prelu"].attrs.axis) % len(shape)
        if slope is None or slope.size not in (1, shape[axis]):
            return unsupported("slope", "PRELU needs a constant slope, one or one a channel.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        slope, numbers = site.constant("slope"), site.quantization(site["slope"])
        assert slope is not None  # check asked
        dims = [1] * len(site.shape("data"))
        dims[int(site["prelu"].attrs.axis) % len(dims)] = slope.size
        integers = site.integers("slope") if site.takes_integers else None
        if integers is not None and numbers is not None:
            alpha = builder.quantized_constant(np.reshape(integers, dims), numbers)
        else:
            alpha = builder.constant(np.reshape(slope, dims))
        source, output = builder.operand(site["data"]), builder.output(site.output)
        builder.add(self.name, output, input=source, alpha=alpha)


OPERATIONS = (PRelu(),)
