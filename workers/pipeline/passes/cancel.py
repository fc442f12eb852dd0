"""Transposes and reshapes that undo the one before them, as between two layers of an exporter's."""

from __future__ import annotations

from tvm import relax

from workers.graph.graph import Binding, Graph, static_shape
from workers.graph.origins import with_origins_of
from workers.graph.rewriter import GraphRewriter

_TRANSPOSE, _RESHAPE = "relax.permute_dims", "relax.reshape"


def cancel_movements(graph: Graph) -> Graph:
    """The graph without them; their nodes count as done where their result is read."""
    if not any(_is_behind_another(graph, binding) for binding in graph.bindings):
        return graph
    moved: dict[relax.Expr, relax.Call] = {}  # by the new graph's variable
    cancelled = False

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        nonlocal cancelled
        call = binding.call
        if call is None or call.op.name not in (_TRANSPOSE, _RESHAPE):
            return None
        source = rewriter.new(call.args[0])
        before = moved.get(source)
        if before is not None and _undoes(call, before):
            cancelled = True
            return before.args[0]
        value = rewriter.typed(relax.Call(call.op, [source, *call.args[1:]], call.attrs))
        var = rewriter.emit(value)
        moved[var] = value
        return var

    result = GraphRewriter(graph).run(rule)
    if not cancelled:
        return graph
    # Once more, without those that nobody reads now.
    return with_origins_of(graph, GraphRewriter(result).run(lambda *_: None))


def _is_behind_another(graph: Graph, binding: Binding) -> bool:
    if binding.call is None or binding.op_name not in (_TRANSPOSE, _RESHAPE):
        return False
    source = graph.value_of.get(binding.call.args[0])
    return getattr(getattr(source, "op", None), "name", "") in (_TRANSPOSE, _RESHAPE)


def _undoes(call: relax.Call, before: relax.Call) -> bool:
    if call.op.name != before.op.name:
        return False
    if call.op.name == _RESHAPE:
        shape = static_shape(call)
        return shape is not None and shape == static_shape(before.args[0])
    second, first = _axes(call), _axes(before)
    return [first[axis] for axis in second] == list(range(len(first)))


def _axes(call: relax.Call) -> list[int]:
    rank = len(static_shape(call.args[0]) or ()) or int(call.args[0].ty.ndim)
    given = call.attrs.axes
    return list(range(rank))[::-1] if given is None else [int(axis) % rank for axis in given]
