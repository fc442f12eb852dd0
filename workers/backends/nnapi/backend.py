"""The NNAPI backend: claims by pattern and check, encodes by lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from service.contracts.artifacts import Rejection
from workers.backends.base import Claims, EncodedRegion, Encoding, Region, Unit
from workers.backends.nnapi.encode import WeightsPool, encode, operand_entries
from workers.backends.nnapi.model import Model, ModelBuilder
from workers.backends.nnapi.operation import unsupported
from workers.backends.nnapi.quantized import for_level, quantizations
from workers.backends.nnapi.sites import Match, SiteFinder
from workers.graph.graph import Graph
from workers.graph.quantization import Quantization

MODULE_KIND = "nnfarm.nnapi"


class NnapiBackend:
    """Implements `workers.backends.base.Backend`."""

    name = "nnapi"

    def __init__(self) -> None:
        self._matches: dict[relax.Var, Match] = {}
        self._numbers: Mapping[relax.Var, Quantization] = {}

    def prepare(self, graph: Graph, feature_level: int) -> Graph:
        """Quantized tensors in the form the level has."""
        return for_level(graph, feature_level)

    def claim(self, graph: Graph, feature_level: int, exclude_ops: Sequence[str]) -> Claims:
        """Largest patterns first, from the outputs backwards."""
        rejections = _excluded(graph, exclude_ops)
        self._numbers = quantizations(graph)
        finder = SiteFinder(graph, feature_level, self._numbers, set(rejections))
        units: list[Unit] = []
        for binding in reversed(graph.bindings):
            if finder.is_taken(binding.var) or binding.call is None:
                continue
            found = finder.find(binding)
            if isinstance(found, Rejection):
                rejections[binding.var] = found
                continue
            self._matches[binding.var] = found
            model = _lower(found, self._numbers)
            units.append(
                Unit(
                    members=found.members,
                    operations=tuple(op.name for op in model.operations),
                    computes=found.operation.computes,
                )
            )
        return Claims(tuple(reversed(units)), rejections)

    def encode(self, regions: Sequence[Region], feature_level: int) -> Encoding:
        """Lower each region; all of an artifact's regions share one weights file."""
        pool = WeightsPool()
        models = [self._lower_region(region) for region in regions]
        entries = [operand_entries(model, pool) for model in models]
        weights = pool.to_bytes()
        encoded = []
        for region, model, operands in zip(regions, models, entries, strict=True):
            if model.level > feature_level:
                raise AssertionError(f"{region.symbol} needs level {model.level}")
            encoded.append(
                EncodedRegion(
                    symbol=region.symbol,
                    module_kind=MODULE_KIND,
                    module_bytes=encode(region.symbol, model, operands, weights),
                    needed_level=model.level,
                    operation_count=len(model.operations),
                )
            )
        return Encoding(tuple(encoded), weights)

    def _lower_region(self, region: Region) -> Model:
        builder = ModelBuilder(self._numbers)
        for var in region.inputs:
            builder.input(var)
        for unit in region.units:
            self._matches[unit.output].lower(builder)
        return builder.finish(region.outputs)


def _excluded(graph: Graph, exclude_ops: Sequence[str]) -> dict[relax.Var, Rejection]:
    rejections = {}
    for binding in graph.bindings:
        types = {graph.nodes[i].op_type for i in graph.origin_of(binding.var)}
        for name in sorted(types.intersection(exclude_ops)):
            rejections[binding.var] = unsupported("excluded", f"{name} was excluded by option.")
    return rejections


def _lower(match: Match, numbers: Mapping[relax.Var, Quantization]) -> Model:
    """Lower one match alone, to name its operations: check and lowering prove each other here."""
    builder = _LooseBuilder(numbers)
    match.lower(builder)
    return builder.model


class _LooseBuilder(ModelBuilder):
    """A builder that takes any variable it has not met as an input."""

    def variable(self, var: relax.Var) -> int:
        """Operand of a variable."""
        return super().variable(var) if var in self._by_var else self.input(var)
