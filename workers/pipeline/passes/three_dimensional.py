"""Convolutions and pools of volumes as those of their frames.

NNAPI has no windows over depth, and the CPU's schedules are written for those over images. A volume
[n, c, d, h, w] becomes images [d * n, c, h, w], and what follows computes on those.
"""

from __future__ import annotations

from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy
from workers.pipeline.passes.three_dimensional_windows import WINDOWS, Frames

_NAMES = """
nn.relu nn.leakyrelu nn.silu nn.gelu clip sigmoid tanh exp abs negative
add subtract multiply divide maximum minimum
"""
_ELEMENTWISE = frozenset(f"relax.{name}" for name in _NAMES.split())
_FLOATS = ("float32", "float16")


def raise_volumes(graph: Graph) -> Graph:
    """The same graph with every three-dimensional window, and what follows it, on images."""
    if not any(b.op_name in WINDOWS for b in graph.bindings):
        return graph
    return _Pass(graph).run()


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rewriter = GraphRewriter(graph)
        self._frames: dict[relax.Expr, Frames] = {}  # by the old variable

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, shape = binding.call, static_shape(binding.var)
        if call is None or shape is None or dtype_of(binding.var) not in _FLOATS:
            return None
        if call.op.name == "relax.mean" and call.args[0] in self._frames:
            return self._mean(call, shape)
        if len(shape) != 5:
            return None
        value = self._images(call, shape)
        if value is None:
            return None
        frames = Frames(rewriter.emit(value), shape[0])
        self._frames[binding.var] = frames
        return lambda: self._volume(frames)

    def _images(self, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
        window = WINDOWS.get(call.op.name)
        if window is not None:
            is_known = static_shape(call.args[0]) is not None
            return window(self, call, shape) if is_known else None
        if call.op.name == "relax.concat" and isinstance(call.args[0], relax.Tuple):
            items = call.args[0].fields
            if int(call.attrs.axis) % 5 != 1 or not all(i in self._frames for i in items):
                return None
            return relax.op.concat([self._frames[item].value for item in items], 1)
        return self._elementwise(call) if call.op.name in _ELEMENTWISE else None

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """Bind an expression of the new graph."""
        return self._rewriter.emit(expr)

    def of(self, expr: relax.Expr) -> Frames:
        """A volume of the old graph as frames."""
        if expr not in self._frames:
            n, c, d, h, w = static_shape(expr) or (0,) * 5
            first = relax.op.permute_dims(self._rewriter.new(expr), (2, 0, 1, 3, 4))
            value = relax.op.reshape(self._inserted(first), (d * n, c, h, w))
            self._frames[expr] = Frames(self._inserted(value), n)
        return self._frames[expr]

    def _volume(self, frames: Frames) -> relax.Expr:
        _, c, h, w = static_shape(frames.value) or (0,) * 4
        apart = relax.op.reshape(frames.value, (frames.depth, frames.batch, c, h, w))
        return self._inserted(relax.op.permute_dims(self._inserted(apart), (1, 2, 0, 3, 4)))

    def _inserted(self, expr: relax.Expr) -> relax.Expr:
        return self._rewriter.emit(expr, frozenset())

    def _elementwise(self, call: relax.Call) -> relax.Expr | None:
        """Of volumes of one shape, and constants a channel."""
        if not any(arg in self._frames for arg in call.args):
            return None
        args = []
        for arg in call.args:
            if not dtype_of(arg):
                args.append(arg)  # a number
                continue
            array = constant_value(arg)
            if array is None:
                if static_shape(arg) != static_shape(call):
                    return None
                args.append(self.of(arg).value)
                continue
            padded = array.reshape((1,) * (5 - array.ndim) + array.shape)
            if padded.size != padded.shape[1]:
                return None
            args.append(relax.const(padded.reshape(1, -1, 1, 1), array.dtype.name))
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _mean(self, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
        """Over all of a volume: of each frame, and of these."""
        frames, axes = self._frames[call.args[0]], call.attrs.axis
        if axes is None or sorted(int(a) % 5 for a in axes) != [2, 3, 4]:
            return None
        each = self.emit(relax.op.mean(frames.value, [2, 3]))
        channels = (static_shape(each) or (0, 0))[1]
        apart = self.emit(relax.op.reshape(each, (frames.depth, frames.batch * channels)))
        return self.emit(relax.op.reshape(self.emit(relax.op.mean(apart, [0])), shape))
