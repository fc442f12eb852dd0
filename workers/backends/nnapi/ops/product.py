"""Products with a transposed operand: BATCH_MATMUL turns it itself, FULLY_CONNECTED wants it so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors
from workers.backends.nnapi.operation import Operation, Pattern, Site
from workers.backends.nnapi.opset import opset
from workers.graph.graph import dtype_of


class _Product(Operation):
    """relax.matmul of [..., m, k] and a transposed [..., n, k], both computed."""

    def patterns(self) -> Iterator[Pattern]:
        rows, turned = wildcard(), wildcard()
        permute = is_op("relax.permute_dims")(turned)
        root = is_op("relax.matmul")(rows, permute)
        yield Pattern(root, {"rows": rows, "turned": turned, "permute": permute})

    def fits(self, site: Site) -> bool:
        rank, axes = site["turned"].ty.ndim, site["permute"].attrs.axes
        if rank < 2 or site["rows"].ty.ndim != rank or site.constant("turned") is not None:
            return False
        order = range(rank)[::-1] if axes is None else [int(a) % rank for a in axes]
        return list(order) == [*range(rank - 2), rank - 1, rank - 2]

    @staticmethod
    def _has_stacks(site: Site) -> bool:
        return site.feature_level >= opset()["BATCH_MATMUL"].level


class TurnedBatchMatmul(_Product):
    """The operation's own flag in place of a transpose."""

    name = "BATCH_MATMUL"

    def fits(self, site: Site) -> bool:
        return self._has_stacks(site) and super().fits(site)

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["rows"], site["turned"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(
            self.name,
            builder.output(site.output),
            lhs=builder.operand(site["rows"]),
            rhs=builder.operand(site["turned"]),
            adjoint_lhs=builder.bool(False),
            adjoint_rhs=builder.bool(True),
        )


class ComputedFullyConnected(_Product):
    """One matrix that is no constant, for levels without BATCH_MATMUL."""

    name = "FULLY_CONNECTED"

    def fits(self, site: Site) -> bool:
        is_matrix = site["turned"].ty.ndim == 2
        return is_matrix and not self._has_stacks(site) and super().fits(site)

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["rows"], site["turned"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        units = site.shape("turned")[0]
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["rows"]),
            weights=builder.operand(site["turned"]),
            bias=builder.constant(np.zeros(units, dtype_of(site.output))),
            activation=builder.int32(0),
        )


OPERATIONS = (TurnedBatchMatmul(), ComputedFullyConnected())
