"""Merging of units, on drawn graphs: convex, complete, and nothing left that could be joined."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import combinations

import hypothesis.strategies as st
from hypothesis import given, settings
from tvm import relax

from workers.backends.base import Region, Unit
from workers.graph.graph import Graph, free_vars
from workers.pipeline.regions import merge_units
from workers.pipeline.stages.partition import to_module


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[Graph, list[bool]]:
    """A random chain-and-branch graph of element-wise operations, and who claims each."""
    count = draw(st.integers(1, 14))
    builder = relax.BlockBuilder()
    source = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [source]):
        with builder.dataflow():
            values = [source]
            for _ in range(count):
                first = draw(st.integers(0, len(values) - 1))
                second = draw(st.integers(0, len(values) - 1))
                values.append(builder.emit(relax.op.add(values[first], values[second])))
            returned = draw(st.sets(st.integers(1, count), max_size=3)) | {count}
            output = builder.emit_output(relax.Tuple([values[i] for i in sorted(returned)]))
        builder.emit_func_output(output)
    module = builder.get()
    claimed = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return Graph(module["main"], {}, (), module), claimed


def _merge(graph: Graph, claimed: list[bool]) -> tuple[Region, ...]:
    calls = [b for b in graph.bindings if b.call is not None]
    units = [
        Unit("a", members=(b.var,), operations=("ADD",), computes=True)
        for b, take in zip(calls, claimed, strict=True)
        if take
    ]
    return merge_units(graph, units)


def _is_convex(graph: Graph, inside: set[relax.Var]) -> bool:
    """By walking: no value computed from the region outside it flows back in."""
    tainted: set[relax.Var] = set()
    for binding in graph.bindings:
        reads = set(free_vars(binding.value))
        if binding.var in inside:
            if reads & tainted:
                return False
        elif reads & (inside | tainted):
            tainted.add(binding.var)
    return True


def _can_be_called(graph: Graph, sets: Sequence[set[relax.Var]]) -> bool:
    """Whether there is an order of calls with each set as one of them."""
    call_of = {var: index for index, inside in enumerate(sets) for var in inside}
    needs: dict[object, set[object]] = {}
    for binding in graph.bindings:
        call = call_of.get(binding.var, binding.var)
        reads = {call_of.get(var, var) for var in free_vars(binding.value)}
        needs.setdefault(call, set()).update(reads - {call})
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return False
    return True


def _variables(region: Region) -> set[relax.Var]:
    return {var for unit in region.units for var in unit.members}


@settings(max_examples=400, deadline=None)
@given(_graphs())
def test_regions_are_convex_disjoint_and_hold_every_claim(drawn: tuple[Graph, list[bool]]) -> None:
    graph, claimed = drawn
    regions = _merge(graph, claimed)
    sets = [_variables(region) for region in regions]
    assert sum(map(len, sets)) == sum(claimed) == len(set().union(*sets) if sets else set())
    assert all(_is_convex(graph, inside) for inside in sets)
    assert _can_be_called(graph, sets)


@settings(max_examples=400, deadline=None)
@given(_graphs())
def test_no_two_regions_could_be_one(drawn: tuple[Graph, list[bool]]) -> None:
    graph, claimed = drawn
    sets = [_variables(region) for region in _merge(graph, claimed)]
    for a, b in combinations(sets, 2):
        others = [inside for inside in sets if inside is not a and inside is not b]
        assert not _can_be_called(graph, [*others, a | b])


@settings(max_examples=200, deadline=None)
@given(_graphs())
def test_the_partitioned_module_calls_every_region_once(
    drawn: tuple[Graph, list[bool]],
) -> None:
    graph, claimed = drawn
    regions = _merge(graph, claimed)
    main = to_module(graph, regions)["main"]
    text = main.script(show_meta=False)
    for region in regions:
        assert text.count(f'"{region.symbol}"') == 1
    assert text.count("R.add(") == claimed.count(False)


def test_two_regions_never_wait_for_each_other() -> None:
    """a -> b and d -> c, with {a, c} and {b, d}: each convex, together a circle."""
    builder = relax.BlockBuilder()
    source = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [source]):
        with builder.dataflow():
            a = builder.emit(relax.op.exp(source))
            d = builder.emit(relax.op.log(source))
            on_cpu = [builder.emit(relax.op.sin(v)) for v in (a, d)]
            b = builder.emit(relax.op.exp(on_cpu[0]))
            c = builder.emit(relax.op.log(on_cpu[1]))
            output = builder.emit_output(relax.Tuple([b, c]))
        builder.emit_func_output(output)
    module = builder.get()
    graph = Graph(module["main"], {}, (), module)
    sets = [_variables(r) for r in _merge(graph, [True, True, False, False, True, True])]
    assert _can_be_called(graph, sets)
    assert max(map(len, sets)) == 2


def test_regions_of_data_movement_alone_are_handed_back() -> None:
    builder = relax.BlockBuilder()
    source = relax.Var("x", relax.TensorType((2, 3), "float32"))
    with builder.function("main", [source]):
        with builder.dataflow():
            moved = builder.emit(relax.op.permute_dims(source, [1, 0]))
            output = builder.emit_output(moved)
        builder.emit_func_output(output)
    module = builder.get()
    graph = Graph(module["main"], {}, (), module)
    unit = Unit("a", members=(graph.bindings[0].var,), operations=("TRANSPOSE",), computes=False)
    assert merge_units(graph, [unit]) == ()
