"""Converters of PyTorch's reductions, norms and distances, by its schemas' arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape

Arguments = Mapping[str, Any]
"""An operation's arguments by the names of its schema, defaults among them."""

Emit = Callable[[relax.Expr], relax.Expr]
Converter = Callable[[Arguments, Emit], Any]
"""Arguments and how to bind an expression, to the node's tensor or list of tensors."""


def _extreme(function: Callable[..., relax.Expr]) -> Converter:
    def convert(given: Arguments, emit: Emit) -> relax.Expr:
        axes = [int(axis) for axis in given["dim"]] or None
        return emit(function(given["self"], axes, bool(given["keepdim"])))

    return convert


def _least(given: Arguments, emit: Emit) -> list[relax.Expr]:
    """min.dim: the values, and where they are."""
    data, axis, keeps = given["self"], int(given["dim"]), bool(given["keepdim"])
    return [
        emit(relax.op.min(data, [axis], keeps)),
        emit(relax.op.argmin(data, axis, keepdims=keeps)),
    ]


def _product(given: Arguments, emit: Emit) -> relax.Expr:
    return emit(relax.op.prod(given["self"], [int(given["dim"])], bool(given["keepdim"])))


def variance(given: Arguments, emit: Emit) -> relax.Expr:
    """var.correction: squares' sum over their number less the correction (1 unless given)."""
    data, shape = given["self"], static_shape(given["self"]) or ()
    axes = [int(axis) % max(len(shape), 1) for axis in given["dim"] or range(len(shape))]
    correction = 1.0 if given["correction"] is None else float(given["correction"])
    result = emit(relax.op.variance(data, axes, bool(given["keepdim"])))
    if not correction:
        return result
    count = math.prod(shape[axis] for axis in axes)
    factor = count / (count - correction) if count > correction else math.nan
    return emit(relax.op.multiply(result, relax.const(factor, dtype_of(data))))


def _deviation(given: Arguments, emit: Emit) -> relax.Expr:
    return emit(relax.op.sqrt(variance(given, emit)))


def _instance_norm(given: Arguments, emit: Emit) -> relax.Expr:
    """Each channel of each sample less its mean, over its deviation."""
    data, shape = given["input"], static_shape(given["input"]) or ()
    if not given["use_input_stats"] or len(shape) < 3:
        raise ValueError("an instance norm by running statistics is not supported")
    axes, dtype = list(range(2, len(shape))), dtype_of(data)
    centred = emit(relax.op.subtract(data, emit(relax.op.mean(data, axes, True))))
    square = emit(relax.op.multiply(centred, centred))
    spread = emit(relax.op.mean(square, axes, True))
    epsilon = relax.const(float(given["eps"]), dtype)
    factor = emit(relax.op.rsqrt(emit(relax.op.add(spread, epsilon))))
    result = emit(relax.op.multiply(centred, factor))
    by_channel = (1, shape[1], *([1] * len(axes)))
    for name, join in (("weight", relax.op.multiply), ("bias", relax.op.add)):
        if given[name] is not None:
            result = emit(join(result, emit(relax.op.reshape(given[name], by_channel))))
    return result


def _distances(given: Arguments, emit: Emit) -> relax.Expr:
    """_cdist_forward: between each row of one stack and each of another."""
    p, (left, right) = float(given["p"]), (given["x1"], given["x2"])
    if p not in (1.0, 2.0):
        raise ValueError(f"distances of order {p:g} are not supported, 1 and 2 are")
    rows = emit(relax.op.expand_dims(left, -2))
    gaps = emit(relax.op.subtract(rows, emit(relax.op.expand_dims(right, -3))))
    if p == 1:
        return emit(relax.op.sum(emit(relax.op.abs(gaps)), [-1]))
    return emit(relax.op.sqrt(emit(relax.op.sum(emit(relax.op.multiply(gaps, gaps)), [-1]))))


def _exp2(given: Arguments, emit: Emit) -> relax.Expr:
    data = given["self"]
    scaled = emit(relax.op.multiply(data, relax.const(math.log(2), dtype_of(data))))
    return emit(relax.op.exp(scaled))


def _hypotenuse(given: Arguments, emit: Emit) -> relax.Expr:
    squares = [emit(relax.op.multiply(given[n], given[n])) for n in ("self", "other")]
    return emit(relax.op.sqrt(emit(relax.op.add(*squares))))


def _erfc(given: Arguments, emit: Emit) -> relax.Expr:
    data = given["self"]
    return emit(relax.op.subtract(relax.const(1.0, dtype_of(data)), emit(relax.op.erf(data))))


def _neither(function: Callable[[relax.Expr, relax.Expr], relax.Expr]) -> Converter:
    """Of fmin and fmax: the other value where one is no number."""

    def convert(given: Arguments, emit: Emit) -> relax.Expr:
        left, right = given["self"], given["other"]
        chosen = emit(function(left, right))
        for value, other in ((left, right), (right, left)):
            if constant_value(value) is None:
                chosen = emit(relax.op.where(emit(relax.op.isnan(value)), other, chosen))
        return chosen

    return convert


CONVERTERS: Mapping[str, Converter] = {
    "_cdist_forward.default": _distances,
    "amax.default": _extreme(relax.op.max),
    "amin.default": _extreme(relax.op.min),
    "erfc.default": _erfc,
    "exp2.default": _exp2,
    "fmax.default": _neither(relax.op.maximum),
    "fmin.default": _neither(relax.op.minimum),
    "hypot.default": _hypotenuse,
    "instance_norm.default": _instance_norm,
    "min.dim": _least,
    "prod.dim_int": _product,
    "std.correction": _deviation,
    "var.correction": variance,
}
"""By the operation's name."""
