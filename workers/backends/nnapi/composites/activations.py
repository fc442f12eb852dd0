"""Activations NNAPI does not have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tvm import relax

from workers.backends.nnapi.composites.rewrite import Emit, Rewrite, real

STEEP = 1e30
STEEP_HALF = 6e4
"""Times this and cut at -1 and 1, a number becomes its sign; float16 ends at 65504."""


def _leaky_relu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """relu(x) - slope * relu(-x): exact, and level 1 has all of it but the subtraction."""
    below = emit(relax.op.nn.relu(emit(relax.op.multiply(args[0], real(-1)))))
    above = emit(relax.op.nn.relu(args[0]))
    return emit(relax.op.add(above, emit(relax.op.multiply(below, real(-float(call.attrs.alpha))))))


def _silu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.multiply(args[0], emit(relax.op.sigmoid(args[0]))))


def _erf_of_magnitude(emit: Emit, magnitude: relax.Expr) -> relax.Expr:
    """erf(z) for z >= 0, with an absolute error below 1.5e-7.

    Abramowitz and Stegun, Handbook of Mathematical Functions, formula 7.1.26.
    """
    scaled = emit(relax.op.multiply(magnitude, real(0.3275911)))
    t = emit(relax.op.divide(real(1), emit(relax.op.add(scaled, real(1)))))
    series = emit(relax.op.multiply(t, real(1.061405429)))
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = emit(relax.op.multiply(emit(relax.op.add(series, real(factor))), t))
    square = emit(relax.op.multiply(magnitude, magnitude))
    decay = emit(relax.op.exp(emit(relax.op.multiply(square, real(-1)))))
    return emit(relax.op.subtract(real(1), emit(relax.op.multiply(series, decay))))


def with_sign(half: bool) -> Mapping[str, Rewrite]:
    """What needs the sign of a number: a steep slope, cut at -1 and 1."""
    steep = STEEP_HALF if half else STEEP

    def sign(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
        del call
        return emit(relax.op.clip(emit(relax.op.multiply(args[0], real(steep))), -1, 1))

    def erf(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
        magnitude = _erf_of_magnitude(emit, emit(relax.op.abs(args[0])))
        return emit(relax.op.multiply(sign(emit, call, args), magnitude))

    return {"relax.sign": sign, "relax.erf": erf}


def _gelu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """(x + |x| erf(|x| / sqrt 2)) / 2: erf is odd, so no sign is needed."""
    del call
    magnitude = emit(relax.op.abs(args[0]))
    erf = _erf_of_magnitude(emit, emit(relax.op.multiply(magnitude, real(math.sqrt(0.5)))))
    total = emit(relax.op.add(args[0], emit(relax.op.multiply(magnitude, erf))))
    return emit(relax.op.multiply(total, real(0.5)))


def _gelu_tanh(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    (x,) = args
    cube = emit(relax.op.multiply(emit(relax.op.multiply(x, x)), x))
    inner = emit(relax.op.add(x, emit(relax.op.multiply(cube, real(0.044715)))))
    curve = emit(relax.op.tanh(emit(relax.op.multiply(inner, real(math.sqrt(2 / math.pi))))))
    half = emit(relax.op.multiply(x, real(0.5)))
    return emit(relax.op.multiply(half, emit(relax.op.add(curve, real(1)))))


def _softplus(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """log(1 + exp(beta x)) / beta, with a power that cannot overflow."""
    beta = float(call.attrs.beta)
    x = args[0] if beta == 1 else emit(relax.op.multiply(args[0], real(beta)))
    small = emit(relax.op.exp(emit(relax.op.multiply(emit(relax.op.abs(x)), real(-1)))))
    bend = emit(relax.op.log(emit(relax.op.add(small, real(1)))))
    whole = emit(relax.op.add(emit(relax.op.nn.relu(x)), bend))
    return whole if beta == 1 else emit(relax.op.multiply(whole, real(1 / beta)))


def _selu(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """Klambauer et al., Self-Normalizing Neural Networks, equation 2."""
    del call
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    below = emit(relax.op.nn.relu(emit(relax.op.multiply(args[0], real(-1)))))
    curve = emit(relax.op.exp(emit(relax.op.multiply(below, real(-1)))))
    curve = emit(relax.op.multiply(emit(relax.op.subtract(curve, real(1))), real(alpha)))
    total = emit(relax.op.add(emit(relax.op.nn.relu(args[0])), curve))
    return emit(relax.op.multiply(total, real(scale)))


def _square(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.multiply(args[0], args[0]))


def _ceil(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    down = emit(relax.op.floor(emit(relax.op.multiply(args[0], real(-1)))))
    return emit(relax.op.multiply(down, real(-1)))


def _round(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """To the nearest integer, halves to the even one; every step is exact."""
    del call
    down = emit(relax.op.floor(args[0]))
    rest = emit(relax.op.subtract(args[0], down))
    half_down = emit(relax.op.multiply(down, real(0.5)))
    is_odd = emit(relax.op.greater(half_down, emit(relax.op.floor(half_down))))
    is_tie = emit(relax.op.logical_and(emit(relax.op.equal(rest, real(0.5))), is_odd))
    is_up = emit(relax.op.logical_or(emit(relax.op.greater(rest, real(0.5))), is_tie))
    return emit(relax.op.where(is_up, emit(relax.op.add(down, real(1))), down))


def _cos(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.sin(emit(relax.op.add(args[0], real(math.pi / 2)))))


REWRITES: Mapping[str, Rewrite] = {
    "relax.nn.leakyrelu": _leaky_relu,
    "relax.nn.selu": _selu,
    "relax.nn.silu": _silu,
    "relax.nn.softplus": _softplus,
    "relax.nn.gelu": _gelu,
    "relax.nn.gelu_tanh": _gelu_tanh,
    "relax.square": _square,
    "relax.ceil": _ceil,
    "relax.round": _round,
    "relax.cos": _cos,
}
