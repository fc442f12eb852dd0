"""exp, tanh, erf and what is made of them, as polynomials that fill vectors.

LLVM knows no vector form of the C library's functions: with them every element is a call.
Relative errors are about 1e-6, within what float32 sums in another order differ by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tvm import relax, te, tirx, topi

from workers.backends.cpu.operators.packed import IS_ELEMENTWISE, IS_OPAQUE
from workers.backends.cpu.schedules.kernel import IS_SCALAR
from workers.graph.graph import dtype_of

Element = Callable[[te.Tensor], te.Tensor]
Lowering = Callable[[relax.BlockBuilder, relax.Call], relax.Expr | None]


def _sigmoid(x: te.Tensor) -> te.Tensor:
    exponential = topi.fast_exp(topi.negative(x))
    return te.compute(x.shape, lambda *at: 1.0 / (1.0 + exponential[at]), name="sigmoid")


def _silu(x: te.Tensor) -> te.Tensor:
    return topi.multiply(x, _sigmoid(x))


def _gelu(x: te.Tensor) -> te.Tensor:
    error = topi.fast_erf(topi.multiply(x, math.sqrt(0.5)))
    return te.compute(x.shape, lambda *at: 0.5 * x[at] * (1.0 + error[at]), name="gelu")


def _lowering(element: Element) -> Lowering:
    def lower(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
        if dtype_of(call) != "float32":
            return None
        hint = call.op.name.rpartition(".")[2]
        # The polynomial's blocks are one function of the element to FuseOps.
        return builder.call_te(
            element, call.args[0], primfunc_name_hint=hint, primfunc_attrs=IS_ELEMENTWISE
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
    "relax.exp": _lowering(topi.fast_exp),
    "relax.tanh": _lowering(topi.fast_tanh),
    "relax.erf": _lowering(topi.fast_erf),
    "relax.sigmoid": _lowering(_sigmoid),
    "relax.nn.silu": _lowering(_silu),
    "relax.nn.gelu": _lowering(_gelu),
    "relax.sinh": _scalar(tirx.sinh),
    "relax.cosh": _scalar(tirx.cosh),
}
"""Operator to lowering."""
