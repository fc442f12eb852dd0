"""64-bit integers as smaller ones and real numbers, casts in front of what only moves data.

NNAPI has no int64. Indices and what is small by its making have 32 bits (`narrow_values`), of a
mask only the comparison counts (`narrow_comparisons`). What is left is one conversion of the
model's input; moved up to it, it takes no reshape to the CPU with it, and counts for no node.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import relax

from workers.graph.graph import Binding, Graph, dtype_of
from workers.graph.origins import with_origins_of
from workers.graph.rewriter import GraphRewriter, Lazy
from workers.pipeline.passes.narrow_comparisons import COMPARISONS, Moved, NarrowComparisons
from workers.pipeline.passes.narrow_values import NARROW, WIDE, NarrowValues, is_computed_gather

BORDER_NOTE = "Its 64-bit input is converted on the CPU, in front of what reads it."


def narrow_integers(graph: Graph) -> Graph:
    """The same graph with 32 bits where they are known to do, and gathers of rows only."""
    is_wide = any(dtype_of(var) == WIDE for var in (*graph.inputs, *graph.value_of))
    if not is_wide and not any(is_computed_gather(b.call) for b in graph.bindings):
        return graph
    rule = _Pass(graph)
    narrowed = with_origins_of(graph, rule.run())
    nodes = (
        replace(node, note=node.note or BORDER_NOTE) if node.index in rule.at_border else node
        for node in narrowed.nodes
    )
    return replace(narrowed, nodes=tuple(nodes))


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rewriter = GraphRewriter(graph)
        self._moved = Moved(graph, self._rewriter)
        self._values = NarrowValues(graph, self._rewriter)
        self._comparisons = NarrowComparisons(graph, self._rewriter)
        self._casts: dict[tuple[relax.Expr, str], relax.Expr] = {}
        self.at_border: set[int] = set()
        """Nodes that are the conversion of an input."""
        self._returned = {out for out in graph.outputs if isinstance(out, relax.Var)}

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call = binding.call
        if call is None:
            return None
        if dtype_of(call) == WIDE:
            return self._wide(binding)
        if is_computed_gather(call):
            return self._values.gathered(call)
        if call.op.name in COMPARISONS and self._are_small(call):
            args = [self._values.of(arg) for arg in call.args]
            return rewriter.emit(relax.Call(call.op, args, call.attrs))
        if dtype_of(call) == "bool":
            return self._comparisons.of(binding.var)
        if call.op.name == "relax.astype" and dtype_of(call.args[0]) == WIDE:
            return self._cast(binding, call)
        return None

    def _wide(self, binding: Binding) -> Lazy:
        """Made when something reads it that needs 64 bits: mostly nothing does."""
        var, emit = binding.var, self._rewriter.emit
        if self._values.is_made_here(var):
            return lambda: emit(relax.op.astype(self._values.of(var), WIDE), frozenset())
        origins = self._graph.origin_of(var)
        return lambda: emit(self._rewriter.new(binding.value), origins)

    def _are_small(self, call: relax.Call) -> bool:
        args = call.args
        if dtype_of(args[0]) != WIDE or not all(self._values.fits(arg) for arg in args):
            return False
        return any(self._values.is_made_here(arg) for arg in args)

    def _cast(self, binding: Binding, call: relax.Call) -> relax.Expr | None:
        """The model's own cast: in 32 bits if it may be, else in front of the movements."""
        source, dtype = call.args[0], str(call.attrs.dtype)
        if self._values.is_made_here(source):
            return self._rewriter.emit(relax.op.astype(self._values.of(source), dtype))
        if dtype == NARROW and binding.var not in self._returned:
            if source in self._graph.inputs:
                self.at_border |= self._graph.origin_of(binding.var)
            return self._values.of(source)
        source, movements = self._moved.source(source)
        is_input = source in self._graph.inputs and binding.var not in self._returned
        if not movements and not is_input:
            return None
        if (source, dtype) not in self._casts:
            cast = relax.op.astype(self._rewriter.new(source), dtype)
            # The border's conversion of an input is nobody's: its readers have the node.
            self._casts[source, dtype] = self._rewriter.emit(
                cast, frozenset() if is_input else None
            )
        if is_input:
            self.at_border |= self._graph.origin_of(binding.var)
        return self._moved.replayed(self._casts[source, dtype], movements)
