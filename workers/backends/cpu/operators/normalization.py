"""softmax and layer norm as chains of blocks that the row rule keeps in the cache."""

from __future__ import annotations

from tvm import relax, te, topi

from workers.backends.cpu.operators.packed import round_up
from workers.backends.cpu.operators.polynomials import exp
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import dtype_of, static_shape

_LOWEST = -3.0e38
"""Less than any value; its exponential is 0 within float32."""


def softmax(builder: relax.BlockBuilder, call: relax.Call, vectors: Vectors) -> relax.Expr | None:
    """Softmax along the last axis, with the exponential as a polynomial (relative error 1e-6)."""
    shape = static_shape(call)
    if shape is None or dtype_of(call) != "float32":
        return None
    if int(call.attrs.axis) % len(shape) != len(shape) - 1:
        return None
    *rows, width = shape
    # A row of odd length is filled up to whole registers, in the cache, by what adds nothing.
    filled = round_up(width, vectors.lanes) if width > vectors.lanes else width

    def compute(x: te.Tensor) -> te.Tensor:
        k, j = te.reduce_axis((0, filled), "k"), te.reduce_axis((0, filled), "j")
        if filled != width:
            x = topi.nn.pad(
                x, (0,) * len(shape), (*(0 for _ in rows), filled - width), _LOWEST, "softmax_fill"
            )
        largest = te.compute(rows, lambda *at: te.max(x[(*at, k)], axis=[k]), name="softmax_max")
        less = te.compute(
            (*rows, filled), lambda *at: x[at] - largest[at[:-1]], name="softmax_less"
        )
        powers = te.compute(less.shape, lambda *at: exp(less[at]), name="softmax_exp")
        total = te.compute(rows, lambda *at: te.sum(powers[(*at, j)], axis=[j]), name="softmax_sum")
        factor = te.compute(rows, lambda *at: 1.0 / total[at], name="softmax_factor")
        return te.compute(shape, lambda *at: powers[at] * factor[at[:-1]], name="softmax")

    return builder.call_te(compute, call.args[0], primfunc_name_hint="softmax")


def layer_norm(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    """Layer norm over the last axis; the variance is of centred values, so it cannot cancel."""
    shape, attrs = static_shape(call), call.attrs
    if shape is None or dtype_of(call) != "float32" or not (attrs.center and attrs.scale):
        return None
    if [int(axis) % len(shape) for axis in attrs.axes] != [len(shape) - 1]:
        return None
    *rows, width = shape
    epsilon = float(attrs.epsilon)

    def compute(x: te.Tensor, gamma: te.Tensor, beta: te.Tensor) -> te.Tensor:
        k, j = te.reduce_axis((0, width), "k"), te.reduce_axis((0, width), "j")
        total = te.compute(rows, lambda *at: te.sum(x[(*at, k)], axis=[k]), name="norm_sum")
        centred = te.compute(
            shape, lambda *at: x[at] - total[at[:-1]] * (1.0 / width), name="norm_centred"
        )
        squares = te.compute(
            rows,
            lambda *at: te.sum(centred[(*at, j)] * centred[(*at, j)], axis=[j]),
            name="norm_squares",
        )
        factor = te.compute(
            rows,
            lambda *at: te.rsqrt(squares[at] * (1.0 / width) + epsilon),
            name="norm_factor",
        )
        return te.compute(
            shape,
            lambda *at: centred[at] * factor[at[:-1]] * gamma[at[-1]] + beta[at[-1]],
            name="norm",
        )

    return builder.call_te(compute, *call.args, primfunc_name_hint="layer_norm")
