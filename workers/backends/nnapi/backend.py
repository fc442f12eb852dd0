"""The NNAPI backend: claims by pattern and check, encodes by lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from tvm import relax

from service.contracts.artifacts import Rejection
from service.contracts.jobs import Precision
from workers.backends.base import Claims, EncodedRegion, Encoding, Region, Unit
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.decompose import decompose
from workers.backends.nnapi.encode import WEIGHTS_FILE, WeightsPool, encode, operand_entries
from workers.backends.nnapi.integers import integers_as_reals
from workers.backends.nnapi.model import Model, Operand
from workers.backends.nnapi.per_channel import without_channels
from workers.backends.nnapi.quantized import for_level, quantizations
from workers.backends.nnapi.rank import lower_ranks
from workers.backends.nnapi.recurrences import settle_layers
from workers.backends.nnapi.scalars import lift_scalars
from workers.backends.nnapi.sites import Match, SiteFinder
from workers.backends.nnapi.transposed.layout import transposed_convolutions
from workers.graph.graph import Graph
from workers.graph.quantization import Quantization

MODULE_KIND = "nnfarm.nnapi"

PRECISION_LEVELS = {Precision.FLOAT32: 1, Precision.RELAXED: 2, Precision.FLOAT16: 3}
"""Feature levels of relaxComputationFloat32toFloat16 and of float16 tensors."""


_SMALL = 32
"""Elements of constants that lowering may read again: shapes, axes, paddings."""


class NnapiBackend:
    """Implements `workers.backends.base.Backend`."""

    name = "nnapi"

    def __init__(self, precision: Precision = Precision.FLOAT32) -> None:
        self._precision = precision
        self._matches: dict[relax.Var, Match] = {}
        self._numbers: Mapping[relax.Var, Quantization] = {}

    def prepare(self, graph: Graph, feature_level: int) -> Graph:
        """Ranks lowered, composites taken apart, quantized tensors in the form the level has."""
        graph = settle_layers(graph, feature_level)
        precision = self.precision_at(feature_level)
        if precision is Precision.FLOAT32:  # in less, rounding would not find the integers
            graph = without_channels(graph, feature_level)
        graph = integers_as_reals(graph, feature_level, precision is not Precision.FLOAT32)
        graph = lower_ranks(lift_scalars(graph))
        graph = transposed_convolutions(graph, feature_level)
        half = precision is Precision.FLOAT16
        return for_level(decompose(graph, feature_level, half), feature_level)

    def precision_at(self, feature_level: int) -> Precision:
        """The precision asked for, or the nearest that a level has."""
        order = (Precision.FLOAT16, Precision.RELAXED, Precision.FLOAT32)
        wanted = order[order.index(self._precision) :]
        return next(p for p in wanted if PRECISION_LEVELS[p] <= feature_level)

    def claim(
        self, graph: Graph, feature_level: int, refused: Mapping[relax.Var, Rejection]
    ) -> Claims:
        """Largest patterns first, from the outputs backwards."""
        rejections = dict(refused)
        self._numbers = quantizations(graph)
        half = self.precision_at(feature_level) is Precision.FLOAT16
        finder = SiteFinder(graph, feature_level, self._numbers, set(rejections), half)
        units: list[Unit] = []
        for binding in reversed(graph.bindings):
            if finder.is_taken(binding.var) or binding.call is None:
                continue
            found = finder.find(binding)
            if isinstance(found, Rejection):
                rejections[binding.var] = found
                continue
            self._matches[found.members[-1]] = found
            model = _lower(found, self._numbers)
            units.append(
                Unit(
                    accelerator=self.name,
                    members=found.members,
                    operations=tuple(op.name for op in model.operations),
                    computes=found.operation.computes,
                )
            )
        return Claims(tuple(reversed(units)), rejections)

    def encode(self, regions: Sequence[Region], feature_level: int) -> Encoding:
        """Lower each region; all of an artifact's regions share one weights file."""
        pool = WeightsPool()
        precision = self.precision_at(feature_level)
        models = [self._lower_region(region, precision) for region in regions]
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
        return Encoding(tuple(encoded), {WEIGHTS_FILE: weights} if weights else {})

    def _lower_region(self, region: Region, precision: Precision) -> Model:
        builder = ModelBuilder(self._numbers, half=precision is Precision.FLOAT16)
        for var in region.inputs:
            builder.input(var)
        for unit in region.units:
            self._matches[unit.output].lower(builder)
        model = builder.finish(region.outputs)
        if precision is Precision.RELAXED:
            model.relaxed = True
            model.level = max(model.level, PRECISION_LEVELS[precision])
        return model


def _lower(match: Match, numbers: Mapping[relax.Var, Quantization]) -> Model:
    """Lower one match alone, to name its operations: check and lowering prove each other here."""
    builder = _LooseBuilder(numbers)
    match.lower(builder)
    return builder.model


class _LooseBuilder(ModelBuilder):
    """A builder that takes any variable it has not met as an input, and leaves weights out.

    Every level names its operations: copying the weights each time was half of a partition's time.
    """

    def variable(self, var: relax.Var) -> int:
        """Operand of a variable."""
        return super().variable(var) if var in self._by_var else self.input(var)

    @staticmethod
    def _content(array: NDArray[Any]) -> bytes:
        return ModelBuilder._content(array) if array.size <= _SMALL else b""

    def _shared(self, operand: Operand) -> int:
        return self._add(operand)  # without their content they cannot be told apart
