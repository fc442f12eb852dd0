"""exp, tanh, erf and sigmoid of one number, as polynomials that fill vectors.

LLVM knows no vector form of the C library's functions: with them every element is a call. Errors
are about 1e-6 of the result, within what float32 sums in another order differ by.

Every argument is bound to a name and stands there once. Read in place as often as the polynomial
needs it, a chain of such functions (mish of a quantized tensor) is millions of nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tirx

Number = Any
"""A TIR expression of one float32."""


def bound(value: Number, body: Callable[[Number], Number], name: str = "x") -> Number:
    """An expression that uses a value several times and contains it once."""
    variable = tirx.Var(name, "float32")
    return tirx.Let(variable, value, body(variable))


def exp(x: Number) -> Number:
    """E to the x; beyond 88.37 on either side as there. Source: Cephes, expf."""
    limit = real(_EXP_LIMIT)
    return bound(te.max(te.min(x, limit), real(-_EXP_LIMIT)), _exp_within)


def _exp_within(x: Number) -> Number:
    """2^n e^rest, with rest within half of ln 2."""

    def parts(n: Number) -> Number:
        bits = (n.astype("int32") + tirx.const(127, "int32")) << tirx.const(23, "int32")
        power = tirx.reinterpret("float32", bits)
        return power * bound(x - n * real(math.log(2)), _exp_of_rest, "rest")

    return bound(te.floor(x * real(math.log2(math.e)) + real(0.5)), parts, "n")


def _exp_of_rest(rest: Number) -> Number:
    return polynomial(rest, _EXP) * rest * rest + rest + real(1.0)


def tanh(x: Number) -> Number:
    """Odd over even polynomial within [-9, 9]; 1 beyond, to float32."""
    return bound(te.max(te.min(x, real(9.0)), real(-9.0)), lambda x: _odd(x, *_TANH))


def erf(x: Number) -> Number:
    """Odd over even polynomial within [-4, 4]; 1 beyond, to float32."""
    return bound(te.max(te.min(x, real(4.0)), real(-4.0)), lambda x: _odd(x, *_ERF))


def sigmoid(x: Number) -> Number:
    """1 / (1 + e^-x)."""
    return real(1.0) / (real(1.0) + exp(real(0.0) - x))


def polynomial(x: Number, terms: Sequence[float]) -> Number:
    """Terms from the constant one up, by Horner."""
    result = real(terms[-1])
    for term in terms[-2::-1]:
        result = result * x + real(term)
    return result


def real(value: float) -> Number:
    """A float32 constant."""
    return tirx.const(value, "float32")


def _odd(x: Number, upper: Sequence[float], lower: Sequence[float]) -> Number:
    def quotient(square: Number) -> Number:
        return x * polynomial(square, upper) / polynomial(square, lower)

    return bound(x * x, quotient, "square")


_EXP_LIMIT = 88.3762626647949

_EXP = (
    *(5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2),
    *(8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4),
)

_TANH = (
    (
        *(4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08),
        *(-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16),
    ),
    (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06),
)

_ERF = (
    (
        *(-1.60960333262415e-02, -2.95459980854025e-03, -7.34990630326855e-04),
        *(-5.69250639462346e-05, -2.10102402082508e-06, 2.77068142495902e-08),
        -2.72614225801306e-10,
    ),
    (
        *(-1.42647390514189e-02, -7.37332916720468e-03, -1.68282697438203e-03),
        *(-2.13374055278905e-04, -1.45660718464996e-05),
    ),
)
"""Rational minimax approximations, the coefficients known from Eigen."""
