"""SELECT: relax.where."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm import relax
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.graph.graph import dtype_of, static_shape


class Select(Operation):
    """NNAPI wants three tensors of one shape: constants are spread out, others multiplied by 1."""

    name = "SELECT"

    def patterns(self) -> Iterator[Pattern]:
        chosen, lhs, rhs = wildcard(), wildcard(), wildcard()
        root = is_op("relax.where")(chosen, lhs, rhs)
        yield Pattern(root, {"condition": chosen, "lhs": lhs, "rhs": rhs})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["lhs"], site["rhs"]])
        if rejection is not None:
            return rejection
        shape = static_shape(site["condition"])
        if shape is None or not 1 <= len(shape) <= 4:
            return unsupported("rank", "SELECT takes a condition of rank 1 to 4.")
        is_spread = any(
            site.constant(part) is None and site.shape(part) != site.output_shape
            for part in ("lhs", "rhs")
        )
        if is_spread and not dtype_of(site.output).startswith("float"):
            return unsupported("broadcast", "SELECT of integers needs tensors of one shape.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        condition = self._condition(site, builder)
        lhs, rhs = (self._spread(site, builder, part) for part in ("lhs", "rhs"))
        output = builder.output(site.output)
        builder.add(self.name, output, condition=condition, lhs=lhs, rhs=rhs)

    @staticmethod
    def _condition(site: Site, builder: ModelBuilder) -> int:
        constant, shape = site.constant("condition"), site.output_shape
        if constant is not None:
            return builder.constant(np.broadcast_to(constant, shape))
        source = builder.operand(site["condition"])
        if site.shape("condition") == shape:
            return source
        spread = builder.temporary(shape, "bool")
        builder.add("LOGICAL_AND", spread, lhs=source, rhs=builder.constant(np.ones(shape, bool)))
        return spread

    @staticmethod
    def _spread(site: Site, builder: ModelBuilder, part: str) -> int:
        constant, shape = site.constant(part), site.output_shape
        expr: relax.Expr = site[part]
        if constant is not None:
            return builder.constant(np.broadcast_to(constant, shape))
        if site.shape(part) == shape:
            return builder.operand(expr)
        spread = builder.temporary(shape, dtype_of(expr))
        ones = builder.constant(np.ones(shape, dtype_of(expr)))
        none = builder.int32(0)
        builder.add("MUL", spread, lhs=builder.operand(expr), rhs=ones, activation=none)
        return spread


OPERATIONS = (Select(),)
