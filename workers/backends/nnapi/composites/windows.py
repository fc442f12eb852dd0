"""Borders and windows NNAPI does not have: padding by repetition, dilation, groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, static_shape

MAX_GROUPS = 16
"""Most groups a transposed convolution is taken apart into."""

MOST_ZEROS = 4
"""A kernel may be made this many times larger by the zeros that stand for its dilation."""

_Positions = NDArray[np.int64]


def _mirrored(size: int, edges: int) -> Callable[[_Positions], _Positions]:
    """Positions reflected at both ends; `edges`: whether the last element comes twice."""
    period = max(2 * size - 2 + 2 * edges, 1)

    def folded(positions: _Positions) -> _Positions:
        inside = positions % period
        return np.where(inside < size, inside, period - inside - edges)

    return folded


_PICKS: Mapping[str, Callable[[int], Callable[[_Positions], _Positions]]] = {
    "replicate": lambda size: lambda positions: positions.clip(0, size - 1),
    "circular": lambda size: lambda positions: positions % size,
    "reflect": lambda size: _mirrored(size, 0),
    "symmetric": lambda size: _mirrored(size, 1),
}
"""Positions in the source of each padding mode."""

_MIRRORS = ("reflect", "symmetric")


def _pad(place: Place, call: relax.Call) -> relax.Expr | None:
    """Padding with the tensor's own elements: they are gathered along each axis."""
    mode, shape = call.attrs.pad_mode, static_shape(call.args[0])
    has_mirror = place.level >= opset()["MIRROR_PAD"].level
    if shape is None or mode not in _PICKS or (mode in _MIRRORS and has_mirror):
        return None
    if place.level < opset()["GATHER"].level:
        return None
    data = place.new(call.args[0])
    widths = np.array([int(w) for w in call.attrs.pad_width]).reshape(-1, 2)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            wanted = np.arange(-before, shape[axis] + after)
            picked = _PICKS[mode](shape[axis])(wanted).astype(np.int32)
            data = place.moved(call.args[0], relax.op.take(data, relax.const(picked), axis))
    return data


def _average_with_padding(place: Place, call: relax.Call) -> relax.Expr | None:
    """The padding counts: it is put around the image first."""
    attrs, shape, output = call.attrs, static_shape(call.args[0]), static_shape(call)
    top, left, bottom, right = (int(p) for p in attrs.padding)
    if not attrs.count_include_pad or attrs.layout != "NHWC" or shape is None or output is None:
        return None
    sizes = [int(s) for s in attrs.pool_size]
    strides = [int(s) for s in attrs.strides]
    padded = (shape[1] + top + bottom, shape[2] + left + right)
    reached = [(output[1 + i] - 1) * strides[i] + sizes[i] for i in (0, 1)]
    leaves_image = any(end > size for end, size in zip(reached, padded, strict=True))
    if not any((top, left, bottom, right)) or leaves_image:
        return None
    widths = [0, 0, top, bottom, left, right, 0, 0]
    data = place.moved(call.args[0], relax.op.nn.pad(place.new(call.args[0]), widths))
    return place.emit(
        relax.op.nn.avg_pool2d(
            data, sizes, strides, layout=attrs.layout, out_layout=attrs.out_layout
        )
    )


def _spread_kernel(kernel: NDArray[np.generic], dilation: tuple[int, int], at: int) -> relax.Expr:
    """A kernel with zeros between its elements; `at`: its axis of rows, before that of columns."""
    shape = list(kernel.shape)
    for axis, step in zip((at, at + 1), dilation, strict=True):
        shape[axis] = (shape[axis] - 1) * step + 1
    spread = np.zeros(shape, kernel.dtype)
    every = (slice(None),) * at + tuple(slice(None, None, step) for step in dilation)
    spread[every] = kernel
    return relax.const(spread)


def _dilation(call: relax.Call) -> tuple[int, int]:
    height, width = (int(d) for d in call.attrs.dilation)
    return height, width


def _dilated(place: Place, call: relax.Call) -> relax.Expr | None:
    """A dilated convolution where the level has none: with zeros in its kernel."""
    kernel, attrs, dilation = constant_value(call.args[1]), call.attrs, _dilation(call)
    if dilation == (1, 1) or kernel is None or attrs.kernel_layout != "HWIO":
        return None
    is_grouped = int(attrs.groups) > 1 and kernel.shape[2] > 1
    if place.level >= opset()["GROUPED_CONV_2D"].level and not is_grouped:
        return None
    spread = _spread_kernel(kernel, dilation, 0)
    if np.prod(static_shape(spread) or ()) > MOST_ZEROS * kernel.size:
        return None
    return place.emit(
        relax.op.nn.conv2d(
            place.new(call.args[0]),
            spread,
            strides=[int(s) for s in attrs.strides],
            padding=[int(p) for p in attrs.padding],
            groups=int(attrs.groups),
            data_layout=attrs.data_layout,
            kernel_layout=attrs.kernel_layout,
            out_layout=attrs.out_layout,
        )
    )


def _transposed(place: Place, call: relax.Call) -> relax.Expr | None:
    """A transposed convolution with groups, one a group, and with dilation, by zeros."""
    kernel, attrs, groups = constant_value(call.args[1]), call.attrs, int(call.attrs.groups)
    dilation, shape = _dilation(call), static_shape(call.args[0])
    if kernel is None or attrs.kernel_layout != "IOHW" or attrs.data_layout != "NCHW":
        return None
    if (groups == 1 and dilation == (1, 1)) or groups > MAX_GROUPS or shape is None:
        return None
    data, width = place.new(call.args[0]), shape[1] // groups
    results = []
    for group in range(groups):
        part = data
        if groups > 1:
            ends = [group * width, (group + 1) * width]
            part = place.emit(relax.op.strided_slice(data, [1], ends[:1], ends[1:]))
        own = kernel[group * width : (group + 1) * width]
        results.append(
            place.emit(
                relax.op.nn.conv2d_transpose(
                    part,
                    _spread_kernel(own, dilation, 2),
                    strides=[int(s) for s in attrs.strides],
                    padding=[int(p) for p in attrs.padding],
                    output_padding=[int(p) for p in attrs.output_padding],
                    data_layout="NCHW",
                    kernel_layout="IOHW",
                )
            )
        )
    return results[0] if groups == 1 else place.emit(relax.op.concat(results, 1))


COMPOSITES: Mapping[str, Composite] = {
    "relax.nn.pad": _pad,
    "relax.nn.avg_pool2d": _average_with_padding,
    "relax.nn.conv2d": _dilated,
    "relax.nn.conv2d_transpose": _transposed,
}
