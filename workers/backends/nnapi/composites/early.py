"""What later levels have as one operation, for levels that do not have it yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Emit, Rewrite, real
from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, static_shape


def _negative(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.multiply(args[0], real(-1)))


def _abs(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    above = emit(relax.op.nn.relu(args[0]))
    below = emit(relax.op.nn.relu(_negative(emit, call, args)))
    return emit(relax.op.add(above, below))


def _subtract(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    return emit(relax.op.add(args[0], _negative(emit, call, args[1:])))


def _divide(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    """By a constant: the last digit may differ, as it does between any two libraries."""
    del call
    divisor = constant_value(args[1])
    if divisor is None or not divisor.all():
        return None
    inverse = (1 / divisor.astype(np.float64)).astype(np.float32)
    return emit(relax.op.multiply(args[0], relax.const(inverse)))


def _sum(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    """The mean times the count."""
    shape, axes = static_shape(call.args[0]), call.attrs.axis
    if not shape or (axes is not None and not len(axes)):
        return None
    chosen = list(range(len(shape))) if axes is None else [int(a) % len(shape) for a in axes]
    count = int(np.prod([shape[axis] for axis in chosen]))
    mean = emit(relax.op.mean(args[0], chosen, bool(call.attrs.keepdims)))
    return emit(relax.op.multiply(mean, real(count)))


def _prelu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    """relu(x) - slope * relu(-x)."""
    slope, rank = constant_value(args[1]), len(static_shape(call) or ())
    if slope is None:
        return None
    dims = [1] * rank
    dims[int(call.attrs.axis) % rank] = slope.size
    below = emit(relax.op.nn.relu(_negative(emit, call, args)))
    scaled = emit(
        relax.op.multiply(below, relax.const(np.negative(slope.reshape(dims), dtype=np.float32)))
    )
    return emit(relax.op.add(emit(relax.op.nn.relu(args[0])), scaled))


_LATER: Mapping[str, tuple[str, Rewrite]] = {
    "relax.negative": ("NEG", _negative),
    "relax.abs": ("ABS", _abs),
    "relax.subtract": ("SUB", _subtract),
    "relax.divide": ("DIV", _divide),
    "relax.sum": ("REDUCE_SUM", _sum),
    "relax.nn.prelu": ("PRELU", _prelu),
}
"""The operation that makes it superfluous, and the composite."""


def before(level: int) -> Mapping[str, Rewrite]:
    """Composites of what a level does not have."""
    return {n: rewrite for n, (op, rewrite) in _LATER.items() if opset()[op].level > level}
