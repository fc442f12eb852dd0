"""Rounding towards zero, and quotients and remainders of real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from workers.backends.nnapi.composites.rewrite import Emit, Rewrite, real


def _towards_zero(emit: Emit, x: relax.Expr) -> relax.Expr:
    """floor(relu(x)) - floor(relu(-x)): one of them is 0, so every step is exact."""
    above = emit(relax.op.floor(emit(relax.op.nn.relu(x))))
    below = emit(relax.op.nn.relu(emit(relax.op.multiply(x, real(-1)))))
    return emit(relax.op.subtract(above, emit(relax.op.floor(below))))


def _rest(emit: Emit, args: Sequence[relax.Expr], quotient: relax.Expr) -> relax.Expr:
    return emit(relax.op.subtract(args[0], emit(relax.op.multiply(quotient, args[1]))))


def _trunc(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return _towards_zero(emit, args[0])


def _floor_divide(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    del call
    return emit(relax.op.floor(emit(relax.op.divide(args[0], args[1]))))


def _floor_mod(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """The rest with the divisor's sign: Python's %."""
    return _rest(emit, args, _floor_divide(emit, call, args))


def _mod(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr:
    """The rest with the dividend's sign: C's fmod."""
    del call
    return _rest(emit, args, _towards_zero(emit, emit(relax.op.divide(args[0], args[1]))))


REWRITES: Mapping[str, Rewrite] = {
    "relax.floor_divide": _floor_divide,
    "relax.floor_mod": _floor_mod,
    "relax.mod": _mod,
    "relax.trunc": _trunc,
}
