"""Merging of claimed units into maximal convex regions.

A region is convex when no path leaves it and comes back: then it can run as one call. Ancestor
and descendant sets are bit sets over the graph's bindings, so a test is a few integer operations
and thousands of operations merge in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tvm import relax

from workers.backends.base import Region, Unit
from workers.graph.graph import Binding, Graph, free_vars


@dataclass
class _Group:
    """Units merged so far, with all bindings they depend on and all that depend on them.

    A group runs as one call: what depends on one of its members depends on all that any of them
    depends on. `ancestors` and `descendants` hold these, too, or two groups that are convex each
    by itself could wait for each other.
    """

    accelerator: str
    units: frozenset[int]
    members: int
    ancestors: int
    descendants: int

    def joined(self, other: _Group) -> _Group:
        return _Group(
            self.accelerator,
            self.units | other.units,
            self.members | other.members,
            self.ancestors | other.ancestors,
            self.descendants | other.descendants,
        )

    @property
    def is_convex(self) -> bool:
        return not self.ancestors & self.descendants & ~self.members

    def learn(self, groups: Iterable[_Group]) -> None:
        """Take in what groups that already know of each other depend on, and tell them of this."""
        above = [g for g in groups if g.members & self.ancestors]
        below = [g for g in groups if g.members & self.descendants]
        for group in above:
            self.ancestors |= group.ancestors | group.members
        for group in below:
            self.descendants |= group.descendants | group.members
        for group in groups:
            if group.members & self.ancestors:
                group.descendants |= self.descendants | self.members
            if group.members & self.descendants:
                group.ancestors |= self.ancestors | self.members


def region_symbol(accelerator: str, index: int) -> str:
    """Name of the packed function of an artifact's n-th region."""
    return f"nnfarm_{accelerator}_{index}"


def merge_units(graph: Graph, units: Sequence[Unit]) -> tuple[Region, ...]:
    """Greedy maximal merging, each accelerator's units among themselves.

    Args:
        graph: the whole graph.
        units: claimed units, in topological order.

    Returns:
        Convex regions in topological order, none of which only moves data.
    """
    groups = _merge(_singletons(graph, units))
    worth = [g for g in groups if any(units[i].computes for i in g.units)]
    worth.sort(key=lambda g: min(g.units))
    return tuple(
        _region(graph, [units[i] for i in sorted(group.units)], index)
        for index, group in enumerate(worth)
    )


def _singletons(graph: Graph, units: Sequence[Unit]) -> list[_Group]:
    index = {b.var: i for i, b in enumerate(graph.bindings)}
    above = [0] * len(index)
    below = [0] * len(index)
    reads = [[index[v] for v in free_vars(b.value) if v in index] for b in graph.bindings]
    for i, sources in enumerate(reads):
        for source in sources:
            above[i] |= above[source] | 1 << source
    for i in range(len(reads) - 1, -1, -1):
        for source in reads[i]:
            below[source] |= below[i] | 1 << i
    groups = []
    for number, unit in enumerate(units):
        positions = [index[var] for var in unit.members]
        group = _Group(unit.accelerator, frozenset({number}), 0, 0, 0)
        for p in positions:
            member = _Group(unit.accelerator, frozenset(), 1 << p, above[p], below[p])
            group = group.joined(member)
        groups.append(group)
    return groups


def _merge(groups: Sequence[_Group]) -> list[_Group]:
    """Join neighbours in topological order, then any two that may be joined, until none may."""
    merged: list[_Group] = []
    for group in groups:
        group.learn(merged)
        _absorb(merged, group, only_neighbours=True)
    while any(_absorb(merged, group, only_neighbours=False) for group in list(merged)):
        pass
    return merged


def _absorb(merged: list[_Group], group: _Group, only_neighbours: bool) -> bool:
    """Put a group into the list, joined with all it may be joined with; whether there were any."""
    if group in merged:
        merged.remove(group)
    grown = group
    for other in reversed(list(merged)):
        candidate = other.joined(grown)
        is_near = bool(other.members & grown.ancestors) or not only_neighbours
        is_of_same = other.accelerator == grown.accelerator
        if is_near and is_of_same and candidate.is_convex:
            merged.remove(other)
            candidate.learn(merged)
            grown = candidate
    merged.append(grown)
    return grown is not group


def _region(graph: Graph, units: Sequence[Unit], index: int) -> Region:
    inside = {var for unit in units for var in unit.members}
    returned = set(graph.outputs)
    inputs = dict.fromkeys(
        var
        for unit in units
        for member in unit.members
        for var in _read(graph, member)
        if var not in inside
    )
    outputs = [
        b.var
        for b in graph.bindings
        if b.var in inside
        and (
            b.var in returned
            or any(user.var not in inside for user in _computing_users(graph, b.var))
        )
    ]
    symbol = region_symbol(units[0].accelerator, index)
    return Region(symbol, tuple(units), tuple(inputs), tuple(outputs))


def _computing_users(graph: Graph, var: relax.Var) -> Iterable[Binding]:
    """Readers of a variable but the aliases and tuples the function returns."""
    return [u for u in graph.users.get(var, ()) if not u.is_returned_only]


def _read(graph: Graph, var: relax.Var) -> Iterable[relax.Var]:
    return free_vars(graph.value_of[var])
