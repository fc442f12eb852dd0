"""Convolutions and pools of sequences as those of images one pixel high.

NNAPI has no other, and the CPU's schedules are written for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy

_NAMES = """
nn.relu nn.leakyrelu nn.silu nn.gelu clip sigmoid tanh exp abs negative
add subtract multiply divide maximum minimum quantize dequantize
"""
_ELEMENTWISE = frozenset(f"relax.{name}" for name in _NAMES.split())


def raise_sequences(graph: Graph) -> Graph:
    """The same graph with every one-dimensional window, and what follows it, on images."""
    if not any(b.op_name in _WINDOWS for b in graph.bindings):
        return graph
    return _Pass(graph).run()


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._rewriter = GraphRewriter(graph)
        self._rows: dict[relax.Var, relax.Expr] = {}  # old variable -> its value as an image

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> Lazy | None:
        call, shape = binding.call, static_shape(binding.var)
        if call is None or shape is None or len(shape) != 3:
            return None
        handler = _WINDOWS.get(call.op.name)
        if handler is not None and None not in [static_shape(arg) for arg in call.args]:
            result = handler(call, self._row)
        elif call.op.name in _ELEMENTWISE:
            result = self._elementwise(call)
        else:
            return None
        if result is None:
            return None
        value = rewriter.emit(result)
        self._rows[binding.var] = value
        return lambda: rewriter.emit(relax.op.reshape(value, shape))

    def _elementwise(self, call: relax.Call) -> relax.Call | None:
        if not any(isinstance(a, relax.Var) and a in self._rows for a in call.args):
            return None
        tensors = [a for a in call.args if isinstance(a.ty, relax.TensorType)]
        if any(static_shape(tensor) is None for tensor in tensors):
            return None
        args = [self._row(a) if isinstance(a.ty, relax.TensorType) else a for a in call.args]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _row(self, expr: relax.Expr) -> relax.Expr:
        """A tensor [n, c, width] as [n, c, 1, width]; one of lower rank that broadcasts to it."""
        if isinstance(expr, relax.Var) and expr in self._rows:
            return self._rows[expr]
        shape = static_shape(expr) or ()
        if len(shape) < 2:
            return self._rewriter.new(expr)  # a scalar, or values along the width
        padded = (*shape[:-1], 1, shape[-1])
        array = constant_value(expr)
        if array is not None:
            return relax.const(array.reshape(padded), array.dtype.name)
        return self._rewriter.emit(relax.op.reshape(self._rewriter.new(expr), padded))


Row = Callable[[relax.Expr], relax.Expr]
Window = Callable[[relax.Call, Row], "relax.Call | None"]


def _conv1d(call: relax.Call, row: Row) -> relax.Call | None:
    attrs = call.attrs
    if attrs.data_layout != "NCW" or attrs.kernel_layout != "OIW":
        return None
    return relax.op.nn.conv2d(
        row(call.args[0]),
        row(call.args[1]),
        strides=[1, int(attrs.strides[0])],
        padding=_window_pads(attrs.padding),
        dilation=[1, int(attrs.dilation[0])],
        groups=int(attrs.groups),
    )


def _conv1d_transpose(call: relax.Call, row: Row) -> relax.Call | None:
    attrs = call.attrs
    if attrs.data_layout != "NCW" or attrs.kernel_layout != "IOW":
        return None
    return relax.op.nn.conv2d_transpose(
        row(call.args[0]),
        row(call.args[1]),
        strides=[1, int(attrs.strides[0])],
        padding=_window_pads(attrs.padding),
        output_padding=[0, int(attrs.output_padding[0])],
        dilation=[1, int(attrs.dilation[0])],
        groups=int(attrs.groups),
    )


def _pool1d(op: Callable[..., relax.Call]) -> Window:
    def window(call: relax.Call, row: Row) -> relax.Call | None:
        attrs = call.attrs
        if attrs.layout != "NCW":
            return None
        return op(
            row(call.args[0]),
            pool_size=[1, int(attrs.pool_size[0])],
            strides=[1, int(attrs.strides[0])],
            padding=_window_pads(attrs.padding),
            dilation=[1, int(attrs.dilation[0])],
            ceil_mode=bool(attrs.ceil_mode),
            count_include_pad=bool(attrs.count_include_pad),
        )

    return window


def _window_pads(padding: Sequence[object]) -> list[int]:
    """Top, left, bottom, right of a row padded at its ends."""
    ends = [int(str(p)) for p in padding]
    return [0, ends[0], 0, ends[-1]]


_WINDOWS: dict[str, Window] = {
    "relax.nn.conv1d": _conv1d,
    "relax.nn.conv1d_transpose": _conv1d_transpose,
    "relax.nn.max_pool1d": _pool1d(relax.op.nn.max_pool2d),
    "relax.nn.avg_pool1d": _pool1d(relax.op.nn.avg_pool2d),
}
