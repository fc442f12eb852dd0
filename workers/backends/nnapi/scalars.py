"""Tensors of rank 0 as tensors of one element.

NNAPI has no rank 0. What reduces, picks or computes a single number computes it as a tensor [1];
the model's own shape is made of that at the border, on the CPU, where no element moves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import relax

from workers.backends.nnapi.rank import ELEMENTWISE
from workers.graph.graph import Binding, Graph, constant_value, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy

ONE = (1,)

_REDUCTIONS = frozenset(f"relax.{n}" for n in ("mean", "sum", "prod", "max", "min", "variance"))
_ARGS = frozenset({"relax.argmax", "relax.argmin"})


def lift_scalars(graph: Graph) -> Graph:
    """The same graph, computed numbers without axes as tensors of one element."""
    if not any(b.call is not None and static_shape(b.var) == () for b in graph.bindings):
        return graph
    return _Pass(graph).run()


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._rewriter = GraphRewriter(graph)
        self._lifted: dict[relax.Var, relax.Expr] = {}  # old variable -> its value [1]
        self._handlers: Mapping[str, Callable[[relax.Call], relax.Expr | None]] = {
            **dict.fromkeys(ELEMENTWISE, self._elementwise),
            **dict.fromkeys(_REDUCTIONS, self._reduction),
            **dict.fromkeys(_ARGS, self._arg),
            "relax.reshape": self._reshape,
            "relax.broadcast_to": self._reshape,
            "relax.take": self._take,
        }

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, shape = binding.call, static_shape(binding.var)
        if call is None or shape is None or call.op.name not in self._handlers:
            return None
        if shape and not any(self._is_scalar(arg) for arg in call.args):
            return None
        result = self._handlers[call.op.name](call)
        if result is None:
            return None
        value = rewriter.emit(result)
        if shape:
            return value
        if static_shape(value) != ONE:
            value = rewriter.emit(relax.op.reshape(value, ONE))
        self._lifted[binding.var] = value
        return lambda: rewriter.emit(relax.op.reshape(value, ()), frozenset())

    @staticmethod
    def _is_scalar(expr: relax.Expr) -> bool:
        return isinstance(expr, relax.Var) and static_shape(expr) == ()

    def _value(self, expr: relax.Expr) -> relax.Expr:
        """An operand; without axes it has one."""
        if not isinstance(expr, relax.Var) or static_shape(expr) != ():
            return self._rewriter.new(expr)
        if expr not in self._lifted:
            one = relax.op.reshape(self._rewriter.new(expr), ONE)
            self._lifted[expr] = self._rewriter.emit(one, frozenset())
        return self._lifted[expr]

    def _with_values(self, call: relax.Call) -> Sequence[relax.Expr]:
        return [self._value(arg) for arg in call.args]

    def _elementwise(self, call: relax.Call) -> relax.Expr:
        return relax.Call(call.op, self._with_values(call), call.attrs, call.ty_args)

    def _reduction(self, call: relax.Call) -> relax.Expr:
        axes = None if call.attrs.axis is None else [int(a) for a in call.attrs.axis]
        reduce = getattr(relax.op, call.op.name.removeprefix("relax."))
        result: relax.Expr = reduce(self._value(call.args[0]), axes, keepdims=True)
        return result

    def _arg(self, call: relax.Call) -> relax.Expr:
        arg = getattr(relax.op, call.op.name.removeprefix("relax."))
        axis = None if call.attrs.axis is None else int(call.attrs.axis)
        result: relax.Expr = arg(self._value(call.args[0]), axis, keepdims=True)
        return result

    def _reshape(self, call: relax.Call) -> relax.Expr:
        shape = static_shape(call) or ONE
        op = relax.op.reshape if call.op.name == "relax.reshape" else relax.op.broadcast_to
        return op(self._value(call.args[0]), shape)

    def _take(self, call: relax.Call) -> relax.Expr | None:
        """One element picked by a constant index, or a computed one."""
        if call.attrs.axis is None or static_shape(call) != ():
            return None
        index = constant_value(call.args[1])
        picked = self._value(call.args[1]) if index is None else relax.const(index.reshape(ONE))
        return relax.op.take(self._value(call.args[0]), picked, int(call.attrs.axis))
