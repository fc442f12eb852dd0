"""concat along the channels, so that the schedule can copy piece by piece in vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from tvm import relax, te, tirx, topi

from workers.backends.cpu.schedules.elementwise import PIECES
from workers.graph.graph import static_shape

CONCAT = "nnfarm.concat"
"""Attribute of a kernel that is nothing but a concat: the axis. Fusion forgets it."""


def concat(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    """Lowers a concat of static shapes; along the last axis piece by piece."""
    (operands,) = call.args
    shape = static_shape(call)
    if shape is None or not isinstance(operands, relax.Tuple) or call.attrs.axis is None:
        return None
    shapes = [static_shape(field) for field in operands.fields]
    if None in shapes:
        return None
    axis = int(call.attrs.axis) % len(shape)
    widths = [operand[-1] for operand in shapes if operand is not None]
    step = math.gcd(*widths)
    if axis < len(shape) - 1 or step < _LEAST_STEP or 0 in widths:
        compute = _by_axis(axis)
    else:
        compute = _by_pieces(shape, widths, step)
    return builder.call_te(
        compute,
        *operands.fields,
        primfunc_name_hint="concatenate",
        primfunc_attrs={CONCAT: axis},
    )


def _by_axis(axis: int) -> Callable[..., te.Tensor]:
    def compute(*pieces: te.Tensor) -> te.Tensor:
        return topi.concatenate(pieces, axis)

    return compute


def _by_pieces(shape: Sequence[int], widths: Sequence[int], step: int) -> Callable[..., te.Tensor]:
    ends = list(accumulate(widths))

    def compute(*pieces: te.Tensor) -> te.Tensor:
        def element(*at: te.Var) -> te.PrimExpr:
            # The same for all lanes of a vector: a choice a lane would be made by scalar code.
            return _chosen(pieces, ends, at, at[-1] // step * step)

        return te.compute(shape, element, name="concat", attrs={PIECES: step})

    return compute


_LEAST_STEP = 4
"""Below it there is no vector to fill."""


def _chosen(
    pieces: Sequence[te.Tensor], ends: Sequence[int], at: Sequence[te.Var], column: te.PrimExpr
) -> te.PrimExpr:
    """The element of the piece that `column` lies in, by halving."""
    if len(pieces) == 1:
        start = ends[0] - int(pieces[0].shape[-1])
        return pieces[0][(*at[:-1], at[-1] - start)]
    half = len(pieces) // 2
    lower = _chosen(pieces[:half], ends[:half], at, column)
    upper = _chosen(pieces[half:], ends[half:], at, column)
    return tirx.if_then_else(column < ends[half - 1], lower, upper)
