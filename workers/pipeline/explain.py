"""The answer to "where does this operation run, and why", for every node of the original model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from service.contracts.artifacts import (
    ExplanationReport,
    LevelCoverage,
    OperationPlacement,
    OperationReport,
    Rejection,
)
from workers.backends.base import Claims, Region, Unit
from workers.graph.graph import Graph, OriginalNode
from workers.pipeline.cost import Cost, costs_of

ISLAND = Rejection(
    code="nnapi.island",
    sentence="Alone it only moves data; a call of the accelerator would cost more.",
    needed_level=None,
)
SMALL = Rejection(
    code="nnapi.small_subgraph",
    sentence="Its subgraph has fewer operations than min_subgraph_ops asks for.",
    needed_level=None,
)


def nodes_of(graph: Graph, region: Region) -> frozenset[int]:
    """Indexes of the original nodes a region computes."""
    members = [var for unit in region.units for var in unit.members]
    return frozenset().union(*(graph.origin_of(var) for var in members))


def explain(
    graph: Graph,
    claims: Claims,
    regions: Sequence[Region],
    found: Sequence[Region],
    feature_level: int,
) -> ExplanationReport:
    """The report of one level.

    Args:
        graph: what was claimed from.
        claims: the backend's word on every binding.
        regions: what is offloaded.
        found: all regions that were worth a call, also those the options hand back.
        feature_level: the level.
    """
    explainer = _Explainer(graph, claims, regions, found)
    reports = tuple(explainer.report(node) for node in graph.nodes)
    counted = [r for r in reports if r.placement is not OperationPlacement.FOLDED]
    inside = [r for r in counted if r.placement is OperationPlacement.NNAPI]
    return ExplanationReport(
        feature_level=feature_level,
        operations=reports,
        offloaded_count=len(inside),
        operation_count=len(counted),
        subgraph_count=len(regions),
        macs=sum(r.macs for r in counted),
        offloaded_macs=sum(r.macs for r in inside),
        size_bytes=sum(r.size_bytes for r in counted),
        offloaded_bytes=sum(r.size_bytes for r in inside),
    )


def coverage_of(report: ExplanationReport) -> LevelCoverage:
    """The totals of a report, for the table of all levels."""
    return LevelCoverage(
        feature_level=report.feature_level,
        offloaded_count=report.offloaded_count,
        subgraph_count=report.subgraph_count,
        offloaded_macs=report.offloaded_macs,
        offloaded_bytes=report.offloaded_bytes,
    )


class _Explainer:
    def __init__(
        self, graph: Graph, claims: Claims, regions: Sequence[Region], found: Sequence[Region]
    ) -> None:
        self._claims = claims
        self._unit_of = {var: unit for unit in claims.units for var in unit.members}
        self._region_of = {unit: i for i, region in enumerate(regions) for unit in region.units}
        self._worth = {unit for region in found for unit in region.units}
        self._costs = costs_of(graph)
        self._computed: Mapping[int, list[relax.Var]] = _variables_by_node(graph)

    def report(self, node: OriginalNode) -> OperationReport:
        variables = self._computed.get(node.index, [])
        units = list(dict.fromkeys(self._unit_of[v] for v in variables if v in self._unit_of))
        refused = [self._claims.rejections[v] for v in variables if v in self._claims.rejections]
        refused += [self._handed_back(unit) for unit in units if unit not in self._region_of]
        inside = [unit for unit in units if unit in self._region_of]
        cost = self._costs.get(node.index, Cost())
        return OperationReport(
            name=node.name,
            op_type=node.op_type,
            placement=_placement(bool(variables), bool(refused)),
            subgraph=self._region_of[inside[0]] if inside and not refused else None,
            accelerator=inside[0].accelerator if inside and not refused else None,
            nnapi_operations=_names(inside) if not refused else (),
            rejection=refused[0] if refused else None,
            note=node.note,
            macs=cost.macs,
            size_bytes=cost.size_bytes,
        )

    def _handed_back(self, unit: Unit) -> Rejection:
        return SMALL if unit in self._worth else ISLAND


def _variables_by_node(graph: Graph) -> Mapping[int, list[relax.Var]]:
    computed: dict[int, list[relax.Var]] = {}
    for binding in graph.bindings:
        for index in graph.origin_of(binding.var):
            computed.setdefault(index, []).append(binding.var)
    return computed


def _placement(is_computed: bool, is_refused: bool) -> OperationPlacement:
    if not is_computed:
        return OperationPlacement.FOLDED
    return OperationPlacement.CPU if is_refused else OperationPlacement.NNAPI


def _names(units: Sequence[Unit]) -> tuple[str, ...]:
    return tuple(name for unit in units for name in unit.operations)
