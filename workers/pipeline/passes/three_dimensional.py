"""Convolutions and pools of volumes as those of their frames.

A window over depth, height and width sees a few frames; side by side as channels these are what
one window over height and width sees. NNAPI has no other, and the CPU's schedules are written for
them. A volume [n, c, d, h, w] becomes images [d * n, c, h, w], and what follows computes on those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy

_NAMES = """
nn.relu nn.leakyrelu nn.silu nn.gelu clip sigmoid tanh exp abs negative
add subtract multiply divide maximum minimum
"""
_ELEMENTWISE = frozenset(f"relax.{name}" for name in _NAMES.split())
_FLOATS = ("float32", "float16")


def raise_volumes(graph: Graph) -> Graph:
    """The same graph with every three-dimensional window, and what follows it, on images."""
    if not any(b.op_name in _WINDOWS for b in graph.bindings):
        return graph
    return _Pass(graph).run()


@dataclass(frozen=True)
class Frames:
    """A volume as images, all of one depth before those of the next.

    Attributes:
        value: [depth * batch, channels, height, width], of the new graph.
        batch: volumes.
    """

    value: relax.Expr
    batch: int

    @property
    def depth(self) -> int:
        """Images of a volume."""
        return (static_shape(self.value) or (0,))[0] // self.batch


Emit = Callable[[relax.Expr], relax.Expr]


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
        window = _WINDOWS.get(call.op.name)
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


def _parts(
    volumes: _Pass, call: relax.Call, data: Frames, size: int, least: float
) -> list[relax.Expr] | None:
    """For each frame of a window, the frames it is in all windows of the result."""
    attrs, wanted = call.attrs, (static_shape(call) or (0,) * 3)[2]
    step, spread = int(attrs.strides[0]), int(attrs.dilation[0])
    front, back = int(attrs.padding[0]), int(attrs.padding[3])
    if (wanted - 1) * step + (size - 1) * spread >= data.depth + front + back:
        return None  # a window that leaves the padding, too
    value, batch = data.value, data.batch
    if front or back:
        widths = [front * batch, back * batch, *(0,) * 6]
        value = volumes.emit(relax.op.nn.pad(value, widths, "constant", least))
    return [_frames_at(volumes, value, batch, k * spread, step, wanted) for k in range(size)]


def _frames_at(
    volumes: _Pass, value: relax.Expr, batch: int, first: int, step: int, count: int
) -> relax.Expr:
    depth = (static_shape(value) or (0,))[0] // batch
    if (first, step, count) == (0, 1, depth):
        return value
    if batch == 1 or step == 1:
        last = first + (count - 1) * step + 1
        bounds = [first * batch], [last * batch], [step if batch == 1 else 1]
        return volumes.emit(relax.op.strided_slice(value, [0], *bounds))
    images = (first + np.arange(count) * step)[:, None] * batch + np.arange(batch)
    return volumes.emit(relax.op.take(value, relax.const(images.reshape(-1).astype("int32")), 0))


def _conv3d(volumes: _Pass, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
    attrs, weight = call.attrs, constant_value(call.args[1])
    is_ours = attrs.data_layout == "NCDHW" and attrs.kernel_layout == "OIDHW"
    if weight is None or not is_ours or len(shape) != 5:
        return None
    parts = _parts(volumes, call, volumes.of(call.args[0]), weight.shape[2], 0.0)
    if parts is None:
        return None
    groups = int(attrs.groups)
    padding = [int(p) for p in attrs.padding]
    settings = {
        "strides": [int(s) for s in attrs.strides[1:]],
        "padding": [*padding[1:3], *padding[4:]],
        "dilation": [int(d) for d in attrs.dilation[1:]],
        "groups": groups,
    }
    if groups == 1:  # frames beside each other, as channels
        data = parts[0] if len(parts) == 1 else volumes.emit(relax.op.concat(parts, 1))
        outputs, inputs, size, *window = weight.shape
        flat = weight.transpose(0, 2, 1, 3, 4).reshape(outputs, size * inputs, *window)
        return relax.op.nn.conv2d(data, _constant(flat), **settings)
    total: relax.Expr | None = None
    for k, part in enumerate(parts):
        own = volumes.emit(relax.op.nn.conv2d(part, _constant(weight[:, :, k]), **settings))
        total = own if total is None else volumes.emit(relax.op.add(total, own))
    return total


def _constant(array: np.ndarray) -> relax.Expr:
    return relax.const(np.ascontiguousarray(array), array.dtype.name)


def _max_pool3d(volumes: _Pass, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
    return _pooled(volumes, call, shape, relax.op.nn.max_pool2d, relax.op.maximum)


def _avg_pool3d(volumes: _Pass, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
    attrs = call.attrs
    if any(int(attrs.padding[at]) for at in (0, 3)) and not attrs.count_include_pad:
        return None
    total = _pooled(volumes, call, shape, relax.op.nn.avg_pool2d, relax.op.add)
    size = int(attrs.pool_size[0])
    if total is None or size == 1:
        return total
    share = relax.const(np.array(1 / size, dtype_of(call)), dtype_of(call))
    return relax.op.multiply(volumes.emit(total), share)


def _pooled(
    volumes: _Pass,
    call: relax.Call,
    shape: tuple[int, ...],
    pool: Callable[..., relax.Call],
    join: Callable[[relax.Expr, relax.Expr], relax.Call],
) -> relax.Expr | None:
    """Each frame by itself, then those of a window together."""
    attrs = call.attrs
    if attrs.layout != "NCDHW" or len(shape) != 5:
        return None
    padding = [int(p) for p in attrs.padding]
    data = volumes.of(call.args[0])
    each = pool(
        data.value,
        pool_size=[int(s) for s in attrs.pool_size[1:]],
        strides=[int(s) for s in attrs.strides[1:]],
        padding=[*padding[1:3], *padding[4:]],
        dilation=[int(d) for d in attrs.dilation[1:]],
        ceil_mode=bool(attrs.ceil_mode),
        count_include_pad=bool(attrs.count_include_pad),
    )
    least = -math.inf if join is relax.op.maximum else 0.0
    if least:
        least = float(np.finfo(dtype_of(call)).min)
    frames = Frames(volumes.emit(each), data.batch)
    parts = _parts(volumes, call, frames, int(attrs.pool_size[0]), least)
    if parts is None:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = volumes.emit(join(total, part))
    return total


_WINDOWS: Mapping[str, Callable[[_Pass, relax.Call, tuple[int, ...]], relax.Expr | None]] = {
    "relax.nn.conv3d": _conv3d,
    "relax.nn.max_pool3d": _max_pool3d,
    "relax.nn.avg_pool3d": _avg_pool3d,
}
