"""Comparisons of two tensors, and logic on their results."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.model import ModelBuilder
from workers.backends.nnapi.operation import Operation, Pattern, Site, check_tensors, unsupported
from workers.graph.graph import dtype_of


class Comparison(Operation):
    """Two tensors of one type to a bool tensor, with broadcasting."""

    def __init__(self, name: str, relax_op: str) -> None:
        self.name = name
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        lhs, rhs = wildcard(), wildcard()
        yield Pattern(is_op(self._relax_op)(lhs, rhs), {"lhs": lhs, "rhs": rhs})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["lhs"], site["rhs"]])
        if rejection is None and dtype_of(site["lhs"]) != dtype_of(site["rhs"]):
            return unsupported("dtype", f"{self.name} compares tensors of one type.")
        return rejection

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(
            self.name,
            builder.output(site.output),
            lhs=builder.operand(site["lhs"]),
            rhs=builder.operand(site["rhs"]),
        )


class LogicalNot(Operation):
    """relax.logical_not."""

    name = "LOGICAL_NOT"

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        yield Pattern(is_op("relax.logical_not")(data), {"data": data})

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        builder.add(self.name, builder.output(site.output), input=builder.operand(site["data"]))


OPERATIONS = (
    Comparison("EQUAL", "relax.equal"),
    Comparison("NOT_EQUAL", "relax.not_equal"),
    Comparison("GREATER", "relax.greater"),
    Comparison("GREATER_EQUAL", "relax.greater_equal"),
    Comparison("LESS", "relax.less"),
    Comparison("LESS_EQUAL", "relax.less_equal"),
    Comparison("LOGICAL_AND", "relax.logical_and"),
    Comparison("LOGICAL_OR", "relax.logical_or"),
    LogicalNot(),
)
