"""Operations an exporter wrote out, as one again: GELU by the error function."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value
from workers.graph.rewriter import GraphRewriter

_TOLERANCE = 1e-4
"""Relative, of constants: exporters of half precision write 1.414."""


def recompose(graph: Graph) -> Graph:
    """x/2 (1 + erf(x / sqrt 2)) becomes relax.nn.gelu, whatever the order of its factors."""
    found = {gelu.last: gelu for b in graph.bindings for gelu in _gelus(graph, b)}
    if not found:
        return graph

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        gelu = found.get(binding.var)
        if gelu is None:
            return None
        return rewriter.emit(relax.op.nn.gelu(rewriter.new(gelu.source)), gelu.origins)

    return GraphRewriter(graph).run(rule)


@dataclass(frozen=True)
class _Gelu:
    source: relax.Expr
    last: relax.Var
    origins: frozenset[int]


def _gelus(graph: Graph, binding: Binding) -> Iterator[_Gelu]:
    """The GELU a call of erf belongs to, if it does."""
    if binding.op_name != "relax.erf" or binding.call is None:
        return
    scaled = binding.call.args[0]
    source = _times(graph, scaled, math.sqrt(0.5))
    plus_one = _only_reader(graph, binding.var, "relax.add")
    if source is None or plus_one is None or not _has_constant(plus_one, 1):
        return
    members = [scaled, binding.var, plus_one.var]
    is_source_seen = is_half_seen = False
    product = plus_one.var
    while not (is_source_seen and is_half_seen):
        reader = _only_reader(graph, product, "relax.multiply")
        if reader is None or reader.call is None:
            return
        left, right = reader.call.args
        factor = right if left.same_as(product) else left
        if _is_number(factor, 0.5) and not is_half_seen:
            is_half_seen = True
        elif factor.same_as(source) and not is_source_seen:
            is_source_seen = True
        elif not is_source_seen and not is_half_seen and _is_half_of(graph, factor, source):
            is_source_seen = is_half_seen = True
            members.append(factor)
        else:
            return
        product = reader.var
        members.append(product)
    yield _Gelu(source, product, frozenset().union(*map(graph.origin_of, members)))


def _only_reader(graph: Graph, var: relax.Var, name: str) -> Binding | None:
    readers = graph.users.get(var, ())
    is_returned = any(out.same_as(var) for out in graph.outputs)
    if len(readers) != 1 or is_returned or readers[0].op_name != name:
        return None
    return readers[0]


def _times(graph: Graph, expr: relax.Expr, factor: float) -> relax.Expr | None:
    """What is multiplied by a number to give the expression."""
    call = graph.value_of.get(expr) if isinstance(expr, relax.Var) else None
    if not isinstance(call, relax.Call) or call.op.name not in ("relax.multiply", "relax.divide"):
        return None
    left, right = call.args
    if call.op.name == "relax.divide":
        return left if _is_number(right, 1 / factor) else None
    if _is_number(right, factor):
        return left
    return right if _is_number(left, factor) else None


def _is_half_of(graph: Graph, expr: relax.Expr, source: relax.Expr) -> bool:
    whole = _times(graph, expr, 0.5)
    return whole is not None and whole.same_as(source)


def _has_constant(binding: Binding, value: float) -> bool:
    return binding.call is not None and any(_is_number(arg, value) for arg in binding.call.args)


def _is_number(expr: relax.Expr, value: float) -> bool:
    array = constant_value(expr)
    if array is None or array.size != 1 or array.dtype.kind != "f":
        return False
    return bool(np.isclose(array.flat[0], value, rtol=_TOLERANCE, atol=0))
