"""Borders NNAPI does not have: padding by repetition."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.backends.nnapi.opset import opset
from workers.graph.graph import static_shape

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


COMPOSITES: Mapping[str, Composite] = {"relax.nn.pad": _pad}
