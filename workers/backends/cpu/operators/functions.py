"""Functions of single numbers, made of polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tvm import relax, te, tirx

from workers.backends.cpu.operators.packed import FUNCTION, IS_ELEMENTWISE, IS_OPAQUE
from workers.backends.cpu.operators.polynomials import Number, bound, erf, exp, real, sigmoid, tanh
from workers.backends.cpu.schedules.kernel import IS_SCALAR
from workers.graph.graph import dtype_of

Lowering = Callable[[relax.BlockBuilder, relax.Call], relax.Expr | None]


def _silu(x: Number) -> Number:
    return bound(x, lambda x: x * sigmoid(x))


def _gelu(x: Number) -> Number:
    return bound(x, lambda x: real(0.5) * x * (real(1.0) + erf(x * real(math.sqrt(0.5)))))


def _lowering(function: Callable[[Number], Number]) -> Lowering:
    def lower(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
        if dtype_of(call) != "float32":
            return None
        hint = call.op.name.rpartition(".")[2]

        def compute(x: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *at: function(x[at]), name=hint)

        return builder.call_te(
            compute,
            call.args[0],
            primfunc_name_hint=hint,
            primfunc_attrs=IS_ELEMENTWISE | {FUNCTION: 1},
        )

    return lower


def _scalar(function: Callable[[te.PrimExpr], te.PrimExpr]) -> Lowering:
    """A function that LLVM refuses in vectors: by itself, and named as not covered."""

    def lower(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
        def compute(x: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *at: function(x[at]), name="f", attrs=IS_SCALAR)

        return builder.call_te(
            compute,
            call.args[0],
            primfunc_name_hint=call.op.name.rpartition(".")[2],
            primfunc_attrs=IS_OPAQUE,
        )

    return lower


FUNCTIONS: Mapping[str, Lowering] = {
    "relax.exp": _lowering(exp),
    "relax.tanh": _lowering(tanh),
    "relax.erf": _lowering(erf),
    "relax.sigmoid": _lowering(sigmoid),
    "relax.nn.silu": _lowering(_silu),
    "relax.nn.gelu": _lowering(_gelu),
    "relax.sinh": _scalar(tirx.sinh),
    "relax.cosh": _scalar(tirx.cosh),
}
"""Operator to lowering."""
