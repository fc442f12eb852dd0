"""FULLY_CONNECTED: relax.matmul with a constant matrix, with or without bias."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.model import Activation, ModelBuilder
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    Site,
    check_tensors,
    unsupported,
    with_activations,
)
from workers.graph.graph import dtype_of


class FullyConnected(Operation):
    """Weights [in, out] become [out, in]; data of higher rank goes through reshapes."""

    name = "FULLY_CONNECTED"

    def patterns(self) -> Iterator[Pattern]:
        data, weight, bias = wildcard(), wildcard(), wildcard()
        matmul = is_op("relax.matmul")(data, weight)
        biased = is_op("relax.add")(matmul, bias)
        parts = {"data": data, "weight": weight, "matmul": matmul}
        yield from with_activations(biased, {**parts, "bias": bias, "add": biased})
        yield from with_activations(matmul, parts)

    def fits(self, site: Site) -> bool:
        weight = site.constant("weight")
        return weight is not None and weight.ndim == 2

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        weight = site.constant("weight")
        assert weight is not None  # it fits
        if "bias" in site:
            bias, units = site.constant("bias"), weight.shape[1]
            if bias is None or bias.shape[-1:] != (units,) or bias.size != units:
                return unsupported("bias", "FULLY_CONNECTED takes one constant bias a unit.")
            if bias.ndim > len(site.shape("data")):
                return unsupported("bias", "The bias raises the rank of the result.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        weight = site.constant("weight")
        assert weight is not None  # check asked
        size, units = weight.shape
        bias = site.constant("bias") if "bias" in site else None
        shape, source = site.shape("data"), builder.operand(site["data"])
        output = builder.output(site.output)
        flat_output = output
        if len(shape) != 2:
            rows = math.prod(shape[:-1])
            source = builder.reshape(source, (rows, size))
            flat_output = builder.temporary((rows, units), dtype_of(site.output))
        builder.add(
            self.name,
            flat_output,
            input=source,
            weights=builder.constant(np.transpose(weight)),
            bias=builder.constant(
                np.zeros(units, weight.dtype) if bias is None else bias.reshape(units)
            ),
            activation=builder.int32(site.activation or Activation.NONE),
        )
        if flat_output != output:
            builder.reshape(flat_output, site.output_shape, output)


OPERATIONS = (FullyConnected(),)
