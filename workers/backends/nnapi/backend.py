"""The NNAPI backend: claims by pattern and check, encodes by lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tvm import relax
from tvm.relax.dpl.pattern import CallPattern, DFPattern

from service.contracts.artifacts import Rejection
from service.contracts.targets import MAX_FEATURE_LEVEL
from workers.backends.base import Claims, EncodedRegion, Encoding, Region, Unit
from workers.backends.nnapi.encode import WeightsPool, encode, operand_entries
from workers.backends.nnapi.model import Model, ModelBuilder
from workers.backends.nnapi.operation import Operation, Pattern, Site, unsupported
from workers.backends.nnapi.ops import operations
from workers.graph.graph import Binding, Graph

MODULE_KIND = "nnfarm.nnapi"


@dataclass(frozen=True)
class _Match:
    """A pattern of an operation found in the graph."""

    operation: Operation
    site: Site
    members: tuple[relax.Var, ...]


@cache
def _patterns_by_root() -> Mapping[str, tuple[tuple[Operation, Pattern], ...]]:
    """Patterns by outermost Relax operator, largest first, else in the order of the op files."""
    found: dict[str, list[tuple[Operation, Pattern]]] = {}
    for operation in operations():
        for pattern in operation.patterns():
            found.setdefault(pattern.root_op, []).append((operation, pattern))
    return {
        root: tuple(sorted(entries, key=lambda entry: -len(entry[1].parts)))
        for root, entries in found.items()
    }


class NnapiBackend:
    """Implements `workers.backends.base.Backend`."""

    name = "nnapi"

    def __init__(self) -> None:
        self._matches: dict[relax.Var, _Match] = {}

    def claim(self, graph: Graph, feature_level: int, exclude_ops: Sequence[str]) -> Claims:
        """Largest patterns first, from the outputs backwards."""
        rejections = _excluded(graph, exclude_ops)
        taken = set(rejections)  # nobody's inner value any more
        units: list[Unit] = []
        variables = _variables_of_calls(graph)
        for binding in reversed(graph.bindings):
            if binding.var in taken or binding.call is None:
                continue
            found = self._find(graph, binding, feature_level, variables, taken)
            if isinstance(found, Rejection):
                rejections[binding.var] = found
                continue
            taken.update(found.members)
            self._matches[binding.var] = found
            model = _lower([found])
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
        builder = ModelBuilder()
        for var in region.inputs:
            builder.input(var)
        for unit in region.units:
            match = self._matches[unit.output]
            match.operation.lower(match.site, builder)
        return builder.finish(region.outputs)

    def _find(
        self,
        graph: Graph,
        binding: Binding,
        feature_level: int,
        variables: Mapping[relax.Expr, relax.Var],
        taken: set[relax.Var],
    ) -> _Match | Rejection:
        """The largest acceptable match that ends in a binding, or the best reason against."""
        reasons: list[Rejection] = []
        for operation, pattern in _patterns_by_root().get(binding.op_name, ()):
            matched = pattern.root.extract_matched_expr(binding.value, graph.value_of)
            if matched is None:
                continue
            members = _members(binding, matched, variables)
            if not _is_free(graph, members, taken):
                continue
            site = Site(_parts(pattern, matched, variables), binding.var, feature_level)
            if site.activation is None or not operation.fits(site):
                continue
            rejection = operation.check(site)
            if rejection is None:
                return _Match(operation, site, members)
            reasons.append(_with_needed_level(operation, site, rejection))
        if not reasons:
            return unsupported("no_operation", f"NNAPI has no operation for {binding.op_name}.")
        return min(reasons, key=lambda reason: reason.needed_level or MAX_FEATURE_LEVEL + 1)


def _with_needed_level(operation: Operation, site: Site, rejection: Rejection) -> Rejection:
    """Make sure the level named is one at which nothing else is in the way."""
    if rejection.needed_level is None:
        return rejection
    for level in range(rejection.needed_level, MAX_FEATURE_LEVEL + 1):
        if operation.check(site.at_level(level)) is None:
            return rejection.model_copy(update={"needed_level": level})
    later = operation.check(site.at_level(MAX_FEATURE_LEVEL))
    return later if later is not None else rejection


def _variables_of_calls(graph: Graph) -> Mapping[relax.Expr, relax.Var]:
    return {b.value: b.var for b in graph.bindings if b.call is not None}


Matched = Mapping[DFPattern, relax.Expr]


def _parts(
    pattern: Pattern, matched: Matched, variables: Mapping[relax.Expr, relax.Var]
) -> Mapping[str, relax.Expr]:
    """Named parts; the matcher looks through variables, so operands are named again here."""
    return {
        name: matched[part]
        if isinstance(part, CallPattern)
        else variables.get(matched[part], matched[part])
        for name, part in pattern.parts.items()
    }


def _members(
    binding: Binding, matched: Matched, variables: Mapping[relax.Expr, relax.Var]
) -> tuple[relax.Var, ...]:
    """Variables of the matched calls in no special order, the binding's own last."""
    calls = [expr for part, expr in matched.items() if isinstance(part, CallPattern)]
    inner = {variables[call] for call in calls if call in variables} - {binding.var}
    return (*inner, binding.var)


def _is_free(graph: Graph, members: Sequence[relax.Var], taken: set[relax.Var]) -> bool:
    """Inner values must belong to nobody else and be read by nobody outside."""
    inside = set(members)
    for var in members[:-1]:
        if var in taken or var in graph.outputs:
            return False
        if any(reader.var not in inside for reader in graph.users.get(var, ())):
            return False
    return True


def _excluded(graph: Graph, exclude_ops: Sequence[str]) -> dict[relax.Var, Rejection]:
    rejections = {}
    for binding in graph.bindings:
        types = {graph.nodes[i].op_type for i in graph.origin_of(binding.var)}
        for name in sorted(types.intersection(exclude_ops)):
            rejections[binding.var] = unsupported("excluded", f"{name} was excluded by option.")
    return rejections


def _lower(matches: Sequence[_Match]) -> Model:
    """Lower one match alone, to name its operations: check and lowering prove each other here."""
    builder = _LooseBuilder()
    for match in matches:
        match.operation.lower(match.site, builder)
    return builder.model


class _LooseBuilder(ModelBuilder):
    """A builder that takes any variable it has not met as an input."""

    def operand(self, expr: relax.Expr) -> int:
        if isinstance(expr, relax.Var) and expr not in self._by_var:
            return self.input(expr)
        return super().operand(expr)
