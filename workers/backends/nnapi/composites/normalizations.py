"""Normalizations NNAPI does not have, as means, differences and products."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tvm import relax

from workers.backends.nnapi.composites.rewrite import Emit, Rewrite, real
from workers.graph.graph import constant_value, static_shape


def _spread(emit: Emit, x: relax.Expr, axes: Sequence[int]) -> tuple[relax.Expr, relax.Expr]:
    """The distance from the mean, and its mean square, over axes that are kept."""
    centred = emit(relax.op.subtract(x, emit(relax.op.mean(x, list(axes), keepdims=True))))
    square = emit(relax.op.multiply(centred, centred))
    return centred, emit(relax.op.mean(square, list(axes), keepdims=True))


def _normalised(emit: Emit, x: relax.Expr, variance: relax.Expr, epsilon: float) -> relax.Expr:
    factor = emit(relax.op.rsqrt(emit(relax.op.add(variance, real(epsilon)))))
    return emit(relax.op.multiply(x, factor))


def _scaled(emit: Emit, x: relax.Expr, gamma: relax.Expr, beta: relax.Expr | None) -> relax.Expr:
    x = emit(relax.op.multiply(x, gamma))
    return x if beta is None else emit(relax.op.add(x, beta))


def _layer_norm(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    rank = len(static_shape(call) or ())
    axes = sorted(int(a) % rank for a in call.attrs.axes)
    if axes != list(range(rank - len(axes), rank)):
        return None  # gamma and beta would not broadcast as they are
    centred, variance = _spread(emit, args[0], axes)
    x = _normalised(emit, centred, variance, float(call.attrs.epsilon))
    gamma = args[1] if call.attrs.scale else real(1)
    return _scaled(emit, x, gamma, args[2] if call.attrs.center else None)


def _rms_norm(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    rank = len(static_shape(call) or ())
    axes = sorted(int(a) % rank for a in call.attrs.axes)
    if axes != list(range(rank - len(axes), rank)):
        return None
    square = emit(relax.op.multiply(args[0], args[0]))
    mean = emit(relax.op.mean(square, axes, keepdims=True))
    x = _normalised(emit, args[0], mean, float(call.attrs.epsilon))
    return _scaled(emit, x, args[1], None)


def _variance(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    rank = len(static_shape(call.args[0]) or ())
    attrs = call.attrs
    axes = list(range(rank)) if attrs.axis is None else [int(a) % rank for a in attrs.axis]
    _, variance = _spread(emit, args[0], axes)
    shape = static_shape(call)
    return variance if attrs.keepdims else emit(relax.op.reshape(variance, shape))


def _group_norm(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    """Per group of channels: rows of [batch * groups, the rest], which keeps ranks low."""
    shape, attrs = static_shape(call), call.attrs
    gamma, beta = constant_value(call.args[1]), constant_value(call.args[2])
    is_first = int(attrs.channel_axis) % len(shape or (1,)) == 1
    if shape is None or gamma is None or beta is None or not is_first:
        return None
    rows = shape[0] * int(attrs.num_groups)
    flat = emit(relax.op.reshape(args[0], (rows, math.prod(shape) // rows)))
    centred, variance = _spread(emit, flat, [1])
    x = emit(relax.op.reshape(_normalised(emit, centred, variance, float(attrs.epsilon)), shape))
    by_channel = (1, shape[1]) + (1,) * (len(shape) - 2)
    weights = [relax.const(a.reshape(by_channel), "float32") for a in (gamma, beta)]
    return _scaled(emit, x, weights[0], weights[1])


REWRITES: Mapping[str, Rewrite] = {
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.rms_norm": _rms_norm,
    "relax.nn.group_norm": _group_norm,
    "relax.variance": _variance,
}
