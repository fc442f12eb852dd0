"""Windows over depth, height and width as windows over images.

A window sees a few frames. Side by side as channels they are what one convolution over height and
width sees; pools are those of each frame, joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape


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


class Volumes(Protocol):
    """Where the windows' operations go."""

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """Bind an expression of the new graph."""

    def of(self, expr: relax.Expr) -> Frames:
        """A volume of the old graph as frames."""


def _parts(
    volumes: Volumes, call: relax.Call, data: Frames, size: int, least: float
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
    volumes: Volumes, value: relax.Expr, batch: int, first: int, step: int, count: int
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


def _conv3d(volumes: Volumes, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
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


def _constant(array: NDArray[Any]) -> relax.Expr:
    return relax.const(np.ascontiguousarray(array), array.dtype.name)


def _max_pool3d(volumes: Volumes, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
    return _pooled(volumes, call, shape, relax.op.nn.max_pool2d, relax.op.maximum)


def _avg_pool3d(volumes: Volumes, call: relax.Call, shape: tuple[int, ...]) -> relax.Expr | None:
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
    volumes: Volumes,
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
    is_largest = join is relax.op.maximum
    least = float(np.finfo(dtype_of(call)).min) if is_largest else 0.0
    frames = Frames(volumes.emit(each), data.batch)
    parts = _parts(volumes, call, frames, int(attrs.pool_size[0]), least)
    if parts is None:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = volumes.emit(join(total, part))
    return total


WINDOWS: Mapping[str, Callable[[Volumes, relax.Call, tuple[int, ...]], relax.Expr | None]] = {
    "relax.nn.conv3d": _conv3d,
    "relax.nn.max_pool3d": _max_pool3d,
    "relax.nn.avg_pool3d": _avg_pool3d,
}
"""By Relax operator: images of the result, not bound; None where they are not known."""
