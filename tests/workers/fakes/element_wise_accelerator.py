"""An accelerator of a package of its own: element-wise operations only, on NNAPI's modules."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from service.contracts.artifacts import Rejection
from workers.backends.base import Claims
from workers.backends.nnapi.backend import NnapiBackend
from workers.graph.graph import Graph

OPERATIONS = ("relax.add", "relax.nn.relu", "relax.tanh")


class ElementWise(NnapiBackend):
    """Takes what is in OPERATIONS."""

    name = "element_wise"

    def claim(
        self, graph: Graph, feature_level: int, refused: Mapping[relax.Var, Rejection]
    ) -> Claims:
        """All but those operations refused."""
        unknown = Rejection(code="element_wise.unknown", sentence="It is not element-wise.")
        others = {b.var: unknown for b in graph.bindings if b.op_name not in OPERATIONS}
        return super().claim(graph, feature_level, {**others, **refused})
