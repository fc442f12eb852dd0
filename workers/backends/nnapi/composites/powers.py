"""Powers with a plain exponent, as products and roots: every level multiplies, few have POW."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from workers.backends.nnapi.composites.rewrite import Emit, Rewrite
from workers.graph.graph import constant_value


def _power(emit: Emit, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Expr | None:
    exponent, base = constant_value(call.args[1]), args[0]
    if exponent is None or exponent.size != 1 or exponent.ndim > len(call.args[0].ty.shape):
        return None
    value = float(exponent.flat[0])
    if value == 0.5:
        return emit(relax.op.sqrt(base))
    if value not in (2, 3):
        return None
    square = emit(relax.op.multiply(base, base))
    return square if value == 2 else emit(relax.op.multiply(square, base))


REWRITES: Mapping[str, Rewrite] = {"relax.power": _power}
