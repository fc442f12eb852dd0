"""Rebuilding a graph binding by binding, with types inferred and origins carried along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import tvm
from tvm import relax

from workers.graph.graph import Binding, Graph, free_vars

Lazy = Callable[[], relax.Expr]
"""Emits a value when, and only when, something asks for it; asked once."""

Rule = Callable[["GraphRewriter", Binding], "relax.Expr | Lazy | None"]
"""Emits what a binding becomes and returns its new value; None copies the binding."""


class GraphRewriter:
    """One walk over a graph that builds its successor.

    A rule sees the old binding and emits new expressions through `emit`; `new` translates old
    variables. Constants are never bound to variables: they stand in the argument lists.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        # The old main must go first: the builder would call the new one "main1".
        others = {v: f for v, f in graph.module.functions.items() if v.name_hint != "main"}
        self._builder = relax.BlockBuilder(tvm.IRModule(others, attrs=graph.module.attrs))
        self._map: dict[relax.Var, relax.Expr] = {}
        self._lazy: dict[relax.Var, Lazy] = {}
        self._origins: dict[relax.Var, frozenset[int]] = {}
        self._current: frozenset[int] = frozenset()

    def new(self, expr: relax.Expr) -> relax.Expr:
        """The new graph's expression for an expression of the old graph."""
        if isinstance(expr, relax.Var):
            if expr in self._lazy:
                self._map[expr] = self._lazy.pop(expr)()
            return self._map.get(expr, expr)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self.new(item) for item in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self.new(expr.tuple_value), expr.index)
        if isinstance(expr, relax.Call):
            return relax.Call(
                expr.op, [self.new(arg) for arg in expr.args], expr.attrs, expr.ty_args
            )
        return expr

    @property
    def current_origins(self) -> frozenset[int]:
        """Original nodes of the binding a rule is being asked about."""
        return self._current

    @contextmanager
    def on_behalf_of(self, origins: frozenset[int]) -> Iterator[None]:
        """What is emitted inside of it is part of these original nodes."""
        before, self._current = self._current, origins
        try:
            yield
        finally:
            self._current = before

    def origins_of(self, expr: relax.Expr) -> frozenset[int]:
        """Original nodes of an expression of the new graph, as far as it has come."""
        return self._origins.get(expr, frozenset()) if isinstance(expr, relax.Var) else frozenset()

    def emit(self, expr: relax.Expr, origins: frozenset[int] | None = None) -> relax.Expr:
        """Bind an expression of the new graph; constants and variables pass through."""
        if isinstance(expr, relax.Var | tvm.ir.GenericConst):
            return expr
        var = self._builder.emit(expr)
        self._origins[var] = self._current if origins is None else origins
        return var

    def typed(self, expr: relax.Expr) -> relax.Expr:
        """An expression of the new graph with its type inferred, not bound."""
        return self._builder.normalize(expr)

    def run(self, rule: Rule, finish: Callable[[relax.Expr], relax.Expr] | None = None) -> Graph:
        """Apply a rule to every binding in order.

        Args:
            rule: what to do with a binding.
            finish: applied to each output of the new graph (still inside the function).

        Returns:
            The new graph, without bindings that no output needs.
        """
        graph = self.graph
        params = [relax.Var(p.name, p.ty) for p in graph.inputs]
        self._map.update(zip(graph.inputs, params, strict=True))
        with self._builder.function("main", params):
            with self._builder.dataflow():
                for binding in _live(graph):
                    self._current = graph.origin_of(binding.var)
                    result = rule(self, binding)
                    if result is None:
                        result = self.emit(self.new(binding.value))
                    if isinstance(result, relax.Expr):
                        self._map[binding.var] = result
                    else:
                        self._lazy[binding.var] = result
                self._current = frozenset()
                outputs = [self.new(out) for out in graph.outputs]
                if finish is not None:
                    outputs = [finish(out) for out in outputs]
                body = outputs[0] if _returns_tensor(graph) else relax.Tuple(outputs)
                result = self._builder.emit_output(body)
            self._builder.emit_func_output(result)
        module = self._builder.get()
        return Graph(module["main"], self._origins, graph.nodes, module)


def _returns_tensor(graph: Graph) -> bool:
    return isinstance(graph.function.ret_ty, relax.TensorType)


def _live(graph: Graph) -> Iterable[Binding]:
    """Bindings some output depends on, in order."""
    needed = {v for out in graph.outputs for v in free_vars(out)}
    kept = []
    for binding in reversed(graph.bindings):
        if binding.var in needed:
            needed.update(free_vars(binding.value))
            kept.append(binding)
    return reversed(kept)
