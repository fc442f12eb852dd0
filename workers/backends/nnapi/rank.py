"""Tensors of rank 5 and more with a leading axis of one element, without it.

NNAPI ends at rank 4. A batch of one says nothing, and detection heads work on [1, anchors, height,
width, values]: what is computed element by element, sliced, joined or transposed behind the batch
axis is the same one rank lower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy

MAX_RANK = 4

_UNARY = """
nn.relu nn.leakyrelu nn.silu nn.gelu nn.gelu_tanh sigmoid tanh exp log sqrt rsqrt abs negative
floor ceil erf sin sign square clip astype
"""
_BINARY = """
add subtract multiply divide power maximum minimum equal not_equal less less_equal greater
greater_equal logical_and logical_or where
"""
ELEMENTWISE = frozenset(f"relax.{name}" for name in f"{_UNARY} {_BINARY}".split())
"""Operators that work on each element by itself."""


def drop_batch(graph: Graph) -> Graph:
    """The same graph, tensors of high rank without a leading axis of one element."""
    if not any(_is_high(static_shape(b.var)) for b in graph.bindings if b.call is not None):
        return graph
    return _Pass(graph).run()


def _is_high(shape: Sequence[int] | None) -> bool:
    return shape is not None and len(shape) > MAX_RANK and shape[0] == 1


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rewriter = GraphRewriter(graph)
        self._low: dict[relax.Var, relax.Expr] = {}  # old variable -> its value, one rank lower
        self._handlers: dict[str, Callable[[relax.Call], relax.Expr | None]] = {
            "relax.reshape": self._reshape,
            "relax.permute_dims": self._permute,
            "relax.concat": self._concat,
            "relax.strided_slice": self._slice,
            "relax.nn.softmax": self._softmax,
        }

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, shape = binding.call, static_shape(binding.var)
        if call is None:
            return None
        if call.op.name == "relax.reshape" and self._has_low(call.args[0]) and shape is not None:
            low = rewriter.emit(relax.op.reshape(self._low[call.args[0]], shape))
            return low if not _is_high(shape) else self._keep(binding.var, low, shape)
        if not _is_high(shape) or shape is None:
            return None
        is_plain = call.op.name in ELEMENTWISE
        handler = self._elementwise if is_plain else self._handlers.get(call.op.name)
        result = handler(call) if handler is not None else None
        if result is None:
            return None
        return self._keep(binding.var, rewriter.emit(result), shape)

    def _keep(self, var: relax.Var, low: relax.Expr, shape: Sequence[int]) -> Lazy:
        if len(static_shape(low) or ()) == len(shape):
            low = self._rewriter.emit(relax.op.reshape(low, shape[1:]))
        self._low[var] = low
        return lambda: self._rewriter.emit(relax.op.reshape(low, shape), frozenset())

    def _has_low(self, expr: relax.Expr) -> bool:
        return isinstance(expr, relax.Var) and expr in self._low

    def _lowered(self, expr: relax.Expr) -> relax.Expr:
        """An operand whose leading axis, if it has one, has one element."""
        if self._has_low(expr):
            return self._low[expr]
        shape = static_shape(expr)
        if not _is_high(shape) or shape is None:
            return self._rewriter.new(expr)
        array = constant_value(expr)
        if array is not None:
            return relax.const(array[0], array.dtype.name)
        low = self._rewriter.emit(
            relax.op.reshape(self._rewriter.new(expr), shape[1:]), frozenset()
        )
        if isinstance(expr, relax.Var):
            self._low[expr] = low
        return low

    def _elementwise(self, call: relax.Call) -> relax.Expr | None:
        tensors = [arg for arg in call.args if isinstance(arg.ty, relax.TensorType)]
        if any(static_shape(t) is None for t in tensors):
            return None
        args = [
            self._lowered(arg) if isinstance(arg.ty, relax.TensorType) else arg for arg in call.args
        ]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _reshape(self, call: relax.Call) -> relax.Expr | None:
        shape = static_shape(call)
        assert shape is not None  # _rule asked
        return relax.op.reshape(self._rewriter.new(call.args[0]), shape[1:])

    def _permute(self, call: relax.Call) -> relax.Expr | None:
        if call.attrs.axes is None or not _is_high(static_shape(call.args[0])):
            return None
        first, *rest = (int(a) for a in call.attrs.axes)
        # Both leading axes have one element: whichever went to the front stands in for the other.
        order = [(first if axis == 0 else axis) - 1 for axis in rest]
        return relax.op.permute_dims(self._lowered(call.args[0]), order)

    def _concat(self, call: relax.Call) -> relax.Expr | None:
        items, rank = call.args[0], len(static_shape(call) or ())
        axis = int(call.attrs.axis or 0) % rank
        if not isinstance(items, relax.Tuple) or axis == 0:
            return None
        return relax.op.concat([self._lowered(item) for item in items.fields], axis - 1)

    def _slice(self, call: relax.Call) -> relax.Expr | None:
        axes, rank = call.args[1], len(static_shape(call) or ())
        if not isinstance(axes, relax.Tuple):
            return None
        positions = [int(getattr(a, "value", a)) % rank for a in axes.fields]
        if 0 in positions or not _is_high(static_shape(call.args[0])):
            return None
        return relax.op.strided_slice(
            self._lowered(call.args[0]),
            [p - 1 for p in positions],
            *call.args[2:],
            assume_inbound=bool(call.attrs.assume_inbound),
        )

    def _softmax(self, call: relax.Call) -> relax.Expr | None:
        axis = int(call.attrs.axis) % len(static_shape(call) or (1,))
        return None if axis == 0 else relax.op.nn.softmax(self._lowered(call.args[0]), axis - 1)
