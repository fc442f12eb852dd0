"""Original nodes through a rewriting: none may get lost on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tvm import relax

from workers.graph.graph import Graph


def with_origins_of(before: Graph, after: Graph) -> Graph:
    """The rewritten graph, nodes that have no value of their own any more with their readers.

    A transpose that cancelled, or a reshape passed over, is done where its result was read.
    """
    present = frozenset().union(*after.origins.values())
    lost = frozenset().union(*before.origins.values()) - present
    if not lost:
        return after
    heirs: dict[int, set[int]] = {}
    for var, nodes in before.origins.items():
        for node in nodes & lost:
            for heir in _first_present(before, var, present):
                heirs.setdefault(heir, set()).add(node)
    origins = {
        var: nodes.union(*(heirs.get(node, ()) for node in nodes))
        for var, nodes in after.origins.items()
    }
    return replace(after, origins=origins)


def _first_present(graph: Graph, var: relax.Var, present: frozenset[int]) -> Iterable[int]:
    """Nodes that are left among the nearest readers of a variable."""
    seen, front = {var}, [var]
    while front:
        readers = [b.var for v in front for b in graph.users.get(v, ()) if b.var not in seen]
        found = frozenset().union(*(graph.origin_of(r) for r in readers)) & present
        if found:
            return found
        seen.update(readers)
        front = readers
    return ()
