"""Partition: what goes to the accelerator at one feature level, as one Relax module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import tvm
from tvm import relax

from service.contracts.artifacts import ExplanationReport
from service.contracts.jobs import CompileOptions
from workers.backends.base import Backend, Claims, Region
from workers.graph.graph import Binding, Graph, free_vars
from workers.graph.origins import with_origins_of
from workers.pipeline.cost import Cost, cost_of
from workers.pipeline.explain import explain, nodes_of
from workers.pipeline.regions import merge_units, region_symbol
from workers.pipeline.selection import refused_by_options

NO_OPTIONS = CompileOptions()


@dataclass(frozen=True)
class Partition:
    """One level's split of the graph.

    Attributes:
        feature_level: the level.
        graph: the graph in the form the backend prepared for the level.
        regions: what is offloaded.
        report: why, node by node.
    """

    feature_level: int
    graph: Graph
    regions: tuple[Region, ...]
    report: ExplanationReport


def partition(
    graph: Graph, backend: Backend, feature_level: int, options: CompileOptions = NO_OPTIONS
) -> Partition:
    """Prepare, claim, merge, and explain.

    Raises:
        NnfarmError: `compile.bad_option`, a node the model does not have.
    """
    refused = refused_by_options(graph, options)
    prepared = with_origins_of(graph, backend.prepare(graph, feature_level))
    if prepared is not graph:
        refused = refused_by_options(prepared, options)
    claims = backend.claim(prepared, feature_level, refused)
    found = _without_fragments(prepared, claims, merge_units(prepared, claims.units))
    regions = _large_enough(prepared, found, options.min_subgraph_ops)
    report = explain(prepared, claims, regions, found, feature_level)
    # Without a region there is nothing the CPU should compute in the accelerator's form.
    return Partition(feature_level, prepared if regions else graph, regions, report)


def _without_fragments(
    graph: Graph, claims: Claims, regions: Sequence[Region]
) -> tuple[Region, ...]:
    """Regions without those that are only the light rest of nodes the CPU computes in part.

    The bias of a convolution that stays on the CPU would be such a rest: a call of the accelerator
    for an addition that the CPU does in passing.
    """
    torn = frozenset().union(*(graph.origin_of(var) for var in claims.rejections))
    return tuple(
        region
        for region in regions
        if nodes_of(graph, region) - torn or any(cost.macs for cost in _costs(graph, region))
    )


def _costs(graph: Graph, region: Region) -> Iterable[Cost]:
    members = [var for unit in region.units for var in unit.members]
    return (cost_of(Binding(var, graph.value_of[var])) for var in members)


def _large_enough(graph: Graph, regions: Sequence[Region], least_count: int) -> tuple[Region, ...]:
    """Regions that compute at least so many original nodes, numbered anew."""
    kept = [region for region in regions if len(nodes_of(graph, region)) >= least_count]
    return tuple(
        replace(region, symbol=region_symbol(region.accelerator, index))
        for index, region in enumerate(kept)
    )


def to_module(graph: Graph, regions: Sequence[Region]) -> tvm.IRModule:
    """The graph with each region as one call of its packed function (TVM's BYOC form).

    This is what RunCodegen leaves behind; its detour over Relax functions would carry the regions'
    weights into the executable a second time.

    Args:
        graph: the whole graph.
        regions: convex regions.

    Returns:
        A module whose `main` calls the regions by symbol and computes the rest.
    """
    others = {v: f for v, f in graph.module.functions.items() if v.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others, attrs=graph.module.attrs))
    params = [relax.Var(p.name, p.ty) for p in graph.inputs]
    new: dict[relax.Var, relax.Expr] = dict(zip(graph.inputs, params, strict=True))
    with builder.function("main", params):
        with builder.dataflow():
            for item in _topological(graph, regions):
                if isinstance(item, Binding):
                    new[item.var] = builder.emit(_replaced(item.value, new))
                else:
                    args = [new[var] for var in item.inputs]
                    types = [var.ty for var in item.outputs]
                    call = relax.call_dps_packed(
                        item.symbol, relax.Tuple(args), types[0] if len(types) == 1 else types
                    )
                    new.update(_results(builder, item, builder.emit(call)))
            outputs = [_replaced(out, new) for out in graph.outputs]
            is_single = isinstance(graph.function.ret_ty, relax.TensorType)
            body = builder.emit_output(outputs[0] if is_single else relax.Tuple(outputs))
        builder.emit_func_output(body)
    return builder.get()


def _results(
    builder: relax.BlockBuilder, region: Region, result: relax.Expr
) -> dict[relax.Var, relax.Expr]:
    if len(region.outputs) == 1:
        return {region.outputs[0]: result}
    return {
        var: builder.emit(relax.TupleGetItem(result, index))
        for index, var in enumerate(region.outputs)
    }


def _replaced(expr: relax.Expr, new: dict[relax.Var, relax.Expr]) -> relax.Expr:
    if isinstance(expr, relax.Var):
        return new[expr]
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([_replaced(item, new) for item in expr.fields])
    if isinstance(expr, relax.TupleGetItem):
        return relax.TupleGetItem(_replaced(expr.tuple_value, new), expr.index)
    if isinstance(expr, relax.Call):
        args = [_replaced(arg, new) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
    return expr


def _topological(graph: Graph, regions: Sequence[Region]) -> Iterable[Binding | Region]:
    """Bindings outside regions, and regions, each after what it reads; graph order otherwise."""
    region_of = {var: r for r in regions for unit in r.units for var in unit.members}
    # By name: a region's own hash is that of its thousands of units.
    items: dict[relax.Var | str, tuple[Binding | Region, set[relax.Var]]] = {}
    for binding in graph.bindings:
        region = region_of.get(binding.var)
        if region is not None:
            if region.symbol not in items:
                items[region.symbol] = region, set(region.inputs)
        elif not binding.is_returned_only:
            items[binding.var] = binding, set(free_vars(binding.value))
    ready = set(graph.inputs)
    while items:
        key = next((key for key, (_, reads) in items.items() if reads <= ready), None)
        if key is None:
            raise AssertionError("the regions are not convex")
        item, _ = items.pop(key)
        ready.update([item.var] if isinstance(item, Binding) else item.outputs)
        yield item
