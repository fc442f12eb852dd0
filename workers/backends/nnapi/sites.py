"""Finding the sites of operations in a graph: patterns, float or between quantization steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import tvm_ffi
from tvm import relax
from tvm.relax.dpl.pattern import CallPattern, DFPattern

from service.contracts.artifacts import Rejection
from service.contracts.targets import MAX_FEATURE_LEVEL
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.coarse import coarse_variables
from workers.backends.nnapi.legality import check_quantized_form, unsupported
from workers.backends.nnapi.operation import Numbers, Operation, Pattern, Site
from workers.backends.nnapi.ops import operations
from workers.graph.graph import Binding, Graph, constant_value, dtype_of, free_vars
from workers.graph.quantization import DEQUANTIZE, QUANTIZE, Quantization

QUANTIZE_LEVEL = 3
"""Feature level of QUANTIZE."""

_PLAIN = ("bool", "int32")
"""Element types a quantized operation may read as they are: conditions and indices."""


@dataclass(frozen=True)
class Match:
    """A pattern of an operation found in the graph, with what is computed together."""

    operation: Operation
    site: Site
    members: tuple[relax.Var, ...]

    def lower(self, builder: ModelBuilder) -> None:
        """Append its operations."""
        builder.enter(self.site.numbers.dequantized, self.site.takes_integers)
        self.operation.lower(self.site, builder)


Matched = Mapping[DFPattern, relax.Expr]


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


class SiteFinder:
    """Gives each binding, asked from the outputs backwards, its largest acceptable match.

    Args:
        graph: the whole graph.
        feature_level: the level checks are made for.
        numbers: parameters of the graph's quantized variables.
        taken: variables that are nobody's inner value any more; grows with every match.
        half: whether float32 tensors become float16.
    """

    def __init__(
        self,
        graph: Graph,
        feature_level: int,
        numbers: Mapping[relax.Var, Quantization],
        taken: set[relax.Var],
        half: bool = False,
    ) -> None:
        self._half = half
        self._coarse = coarse_variables(graph)
        # Once: of a dict TVM would make its map anew at each of a thousand questions.
        self._value_of = tvm_ffi.Map(graph.value_of)
        self._graph = graph
        self._level = feature_level
        self._numbers = numbers
        self._taken = taken
        # Items of tuples, too: the matcher looks through variables, and operands have names.
        self._variables = {b.value: b.var for b in graph.bindings if not b.is_returned_only}
        self._bindings = {b.var: b for b in graph.bindings}
        self._refused_as_integers: dict[relax.Var, Rejection] = {}
        self._returned = {out for out in graph.outputs if isinstance(out, relax.Var)}

    def is_taken(self, var: relax.Var) -> bool:
        """Whether a match has the variable, or none may."""
        return var in self._taken

    def find(self, binding: Binding) -> Match | Rejection:
        """The match that ends in a binding, or the best reason against."""
        # Real numbers that could not be quantized again there would leave at once.
        if binding.var in self._refused_as_integers and self._level < QUANTIZE_LEVEL:
            return self._refused_as_integers[binding.var]
        reasons: list[Rejection] = []
        if binding.op_name == QUANTIZE:
            found = self._find_quantized(binding, reasons)
        else:
            found = self._search(binding, binding, reasons, on_integers=True)
        if found is None:
            found = self._search(binding, binding, reasons)
        if found is None:
            return _best(reasons) or unsupported(
                "no_operation", f"NNAPI has no operation for {binding.op_name}."
            )
        self._taken.update(found.members)
        return found

    def _find_quantized(self, binding: Binding, reasons: list[Rejection]) -> Match | None:
        """The operation in front of a quantize call, computed on integers."""
        assert binding.call is not None
        producer = self._bindings.get(binding.call.args[0])
        if producer is None or producer.call is None or producer.op_name == DEQUANTIZE:
            return None
        if producer.var in self._taken or not self._is_inner(producer.var, {binding.var}):
            return None
        return self._search(producer, binding, reasons, on_integers=True)

    def _search(
        self, root: Binding, last: Binding, reasons: list[Rejection], on_integers: bool = False
    ) -> Match | None:
        """The largest acceptable match whose pattern ends in `root` and whose unit in `last`."""
        for operation, pattern in _patterns_by_root().get(root.op_name, ()):
            form = operation.quantized
            if on_integers and (form is None or form.gives_plain != (root is last)):
                continue
            matched = pattern.root.extract_matched_expr(root.value, self._value_of)
            if matched is None:
                continue
            calls = _inner_calls(matched, self._variables) | {root.var}
            dequantized = self._dequantized(calls, constants_only=not on_integers)
            if dequantized is None or (on_integers and not dequantized):
                continue
            members = (*((calls | set(dequantized)) - {last.var}), last.var)
            if not self._is_free(members):
                continue
            numbers = Numbers(self._numbers, dequantized, on_integers, self._half, self._coarse)
            results = self._results(root.var) if operation.gives_several else {}
            parts = {**_parts(pattern, matched, self._variables), **results}
            site = Site(parts, last.var, self._level, numbers)
            if site.activation is None or not operation.fits(site):
                continue
            rejection = _check(operation, site)
            if rejection is None:
                return Match(operation, site, (*members, *results.values()))
            reasons.append(_with_needed_level(operation, site, rejection))
            if on_integers and root is not last:
                self._refused_as_integers.update(dict.fromkeys(calls, reasons[-1]))
        return None

    def _results(self, var: relax.Var) -> dict[str, relax.Var]:
        """Items of an operation with several results, "result0" and so on; those that are read."""
        return {
            f"result{reader.value.index}": reader.var
            for reader in self._graph.users.get(var, ())
            if isinstance(reader.value, relax.TupleGetItem)
        }

    def _dequantized(
        self, calls: set[relax.Var], constants_only: bool
    ) -> dict[relax.Var, relax.Call] | None:
        """Dequantize calls that a match's calls read; None where a tensor is not quantized."""
        found: dict[relax.Var, relax.Call] = {}
        for var in calls:
            for operand in free_vars(self._bindings[var].value):
                if operand in calls:
                    continue
                reader = self._bindings.get(operand)
                if reader is None or reader.call is None or reader.op_name != DEQUANTIZE:
                    if not constants_only and dtype_of(operand) not in _PLAIN:
                        return None
                    continue
                if not constants_only or constant_value(reader.call.args[0]) is not None:
                    found[operand] = reader.call
        return found

    def _is_free(self, members: Sequence[relax.Var]) -> bool:
        """Inner values must belong to nobody else and be read by nobody outside."""
        inside = set(members)
        return all(var not in self._taken and self._is_inner(var, inside) for var in members[:-1])

    def _is_inner(self, var: relax.Var, readers: set[relax.Var]) -> bool:
        if var in self._returned:
            return False
        return all(reader.var in readers for reader in self._graph.users.get(var, ()))


def _check(operation: Operation, site: Site) -> Rejection | None:
    if site.takes_integers and operation.quantized is not None:
        rejection = check_quantized_form(operation.quantized, site, operation.name)
        if rejection is not None:
            return rejection
    return operation.check(site)


def _best(reasons: Sequence[Rejection]) -> Rejection | None:
    """The reason that the lowest level lifts."""
    ranked = sorted(reasons, key=lambda reason: reason.needed_level or MAX_FEATURE_LEVEL + 1)
    return ranked[0] if ranked else None


def _with_needed_level(operation: Operation, site: Site, rejection: Rejection) -> Rejection:
    """Make sure the level named is one at which nothing else is in the way."""
    if rejection.needed_level is None:
        return rejection
    for level in range(rejection.needed_level, MAX_FEATURE_LEVEL + 1):
        if _check(operation, site.at_level(level)) is None:
            return rejection.model_copy(update={"needed_level": level})
    later = _check(operation, site.at_level(MAX_FEATURE_LEVEL))
    return later if later is not None else rejection


def _inner_calls(matched: Matched, variables: Mapping[relax.Expr, relax.Var]) -> set[relax.Var]:
    calls = (expr for part, expr in matched.items() if isinstance(part, CallPattern))
    return {variables[call] for call in calls if call in variables}


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
