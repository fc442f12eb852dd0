"""Operations NNAPI does not have, written as those it has.

Done to the graph before anything is claimed, so that each piece is claimed, checked and explained
like any other. The CPU twin keeps the original operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter, Lazy

Emit = Callable[[relax.Expr], relax.Expr]
Rewrite = Callable[[Emit, relax.Call, Sequence[relax.Expr]], "relax.Expr | None"]

NEG_LEVEL = 3
"""Feature level of NEG and ABS."""

STEEP = 1e30
STEEP_HALF = 6e4
"""Times this and cut at -1 and 1, a number becomes its sign; float16 ends at 65504."""


def decompose(graph: Graph, feature_level: int, half: bool) -> Graph:
    """Replace what has no NNAPI operation at a level by what has.

    Only for float32 tensors: elsewhere the operation stays, and is refused with its reason.

    Args:
        graph: normalised.
        feature_level: the level to be claimed for.
        half: whether float32 tensors will be computed as float16.
    """
    table = _REWRITES | _with_sign(STEEP_HALF if half else STEEP)
    if feature_level < NEG_LEVEL:
        table |= _BEFORE_LEVEL_3

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call = binding.call
        if call is None:
            return None
        if call.op.name in _ARGS:
            return _as_int32(rewriter, call)
        rewrite = table.get(call.op.name)
        if rewrite is None or dtype_of(call) != "float32" or static_shape(call) is None:
            return None
        return rewrite(rewriter.emit, call, [rewriter.new(arg) for arg in call.args])

    if not any(b.op_name in table or b.op_name in _ARGS for b in graph.bindings):
        return graph
    return GraphRewriter(graph).run(rule)


_ARGS = ("relax.argmax", "relax.argmin")


def _as_int32(rewriter: GraphRewriter, call: relax.Call) -> Lazy | relax.Expr:
    """NNAPI's indices are int32; the model's int64 is made of them on the CPU, and only there."""
    found = rewriter.emit(rewriter.new(call))
    short = rewriter.emit(relax.op.astype(found, "int32"))
    return lambda: rewriter.emit(relax.op.astype(short, "int64"), frozenset())


def _c(value: float) -> relax.Expr:
    return relax.const(np.float32(value), "float32")


def _leaky_relu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """relu(x) - slope * relu(-x): exact, and level 1 has all of it but the subtraction."""
    below = emit(relax.op.nn.relu(emit(relax.op.multiply(args[0], _c(-1)))))
    above = emit(relax.op.nn.relu(args[0]))
    return emit(relax.op.add(above, emit(relax.op.multiply(below, _c(-float(call.attrs.alpha))))))


def _silu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.multiply(args[0], emit(relax.op.sigmoid(args[0]))))


def _erf_of_magnitude(emit: Emit, magnitude: relax.Expr) -> relax.Expr:
    """erf(z) for z >= 0, with an absolute error below 1.5e-7.

    Abramowitz and Stegun, Handbook of Mathematical Functions, formula 7.1.26.
    """
    scaled = emit(relax.op.multiply(magnitude, _c(0.3275911)))
    t = emit(relax.op.divide(_c(1), emit(relax.op.add(scaled, _c(1)))))
    series = emit(relax.op.multiply(t, _c(1.061405429)))
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = emit(relax.op.multiply(emit(relax.op.add(series, _c(factor))), t))
    square = emit(relax.op.multiply(magnitude, magnitude))
    decay = emit(relax.op.exp(emit(relax.op.multiply(square, _c(-1)))))
    return emit(relax.op.subtract(_c(1), emit(relax.op.multiply(series, decay))))


def _with_sign(steep: float) -> dict[str, Rewrite]:
    """What needs the sign of a number: a steep slope, cut at -1 and 1."""

    def sign(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
        del call
        return emit(relax.op.clip(emit(relax.op.multiply(args[0], _c(steep))), -1, 1))

    def erf(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
        magnitude = _erf_of_magnitude(emit, emit(relax.op.abs(args[0])))
        return emit(relax.op.multiply(sign(emit, call, args), magnitude))

    return {"relax.sign": sign, "relax.erf": erf}


def _gelu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """(x + |x| erf(|x| / sqrt 2)) / 2: erf is odd, so no sign is needed."""
    del call
    magnitude = emit(relax.op.abs(args[0]))
    erf = _erf_of_magnitude(emit, emit(relax.op.multiply(magnitude, _c(math.sqrt(0.5)))))
    total = emit(relax.op.add(args[0], emit(relax.op.multiply(magnitude, erf))))
    return emit(relax.op.multiply(total, _c(0.5)))


def _gelu_tanh(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    (x,) = args
    cube = emit(relax.op.multiply(emit(relax.op.multiply(x, x)), x))
    inner = emit(relax.op.add(x, emit(relax.op.multiply(cube, _c(0.044715)))))
    curve = emit(relax.op.tanh(emit(relax.op.multiply(inner, _c(math.sqrt(2 / math.pi))))))
    half = emit(relax.op.multiply(x, _c(0.5)))
    return emit(relax.op.multiply(half, emit(relax.op.add(curve, _c(1)))))


def _square(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.multiply(args[0], args[0]))


def _ceil(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    down = emit(relax.op.floor(emit(relax.op.multiply(args[0], _c(-1)))))
    return emit(relax.op.multiply(down, _c(-1)))


def _negative(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.multiply(args[0], _c(-1)))


def _abs(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    above = emit(relax.op.nn.relu(args[0]))
    below = emit(relax.op.nn.relu(_negative(emit, call, args)))
    return emit(relax.op.add(above, below))


def _spread(emit: Emit, x: relax.Expr, axes: Sequence[int]) -> tuple[relax.Expr, relax.Expr]:
    """The distance from the mean, and its mean square, over axes that are kept."""
    centred = emit(relax.op.subtract(x, emit(relax.op.mean(x, list(axes), keepdims=True))))
    square = emit(relax.op.multiply(centred, centred))
    return centred, emit(relax.op.mean(square, list(axes), keepdims=True))


def _normalised(emit: Emit, x: relax.Expr, variance: relax.Expr, epsilon: float) -> relax.Expr:
    factor = emit(relax.op.rsqrt(emit(relax.op.add(variance, _c(epsilon)))))
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
    gamma = args[1] if call.attrs.scale else _c(1)
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


_REWRITES: dict[str, Rewrite] = {
    "relax.nn.leakyrelu": _leaky_relu,
    "relax.nn.silu": _silu,
    "relax.nn.gelu": _gelu,
    "relax.nn.gelu_tanh": _gelu_tanh,
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.rms_norm": _rms_norm,
    "relax.nn.group_norm": _group_norm,
    "relax.variance": _variance,
    "relax.square": _square,
    "relax.ceil": _ceil,
}

_BEFORE_LEVEL_3: Mapping[str, Rewrite] = {"relax.negative": _negative, "relax.abs": _abs}
