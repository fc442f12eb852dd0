"""Arithmetic of levels 1 and 2, where the operation itself came later."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place, real
from workers.backends.nnapi.opset import opset
from workers.graph.bounds import bounds_of
from workers.graph.graph import constant_value, static_shape

LARGEST_BOUND = 256.0
"""Of a cut that adds the bound and takes it away: by a larger one, numbers would lose digits."""


def _negated(place: Place, value: relax.Expr) -> relax.Expr:
    array = constant_value(value)
    if array is not None:
        return relax.const(np.negative(array))
    return place.emit(relax.op.multiply(value, real(-1)))


def _negative(place: Place, call: relax.Call) -> relax.Expr:
    return _negated(place, place.new(call.args[0]))


def _relu(place: Place, value: relax.Expr) -> relax.Expr:
    return place.emit(relax.op.nn.relu(value))


def _abs(place: Place, call: relax.Call) -> relax.Expr:
    value = place.new(call.args[0])
    return place.emit(relax.op.add(_relu(place, value), _relu(place, _negated(place, value))))


def _subtract(place: Place, call: relax.Call) -> relax.Expr:
    left, right = (place.new(arg) for arg in call.args)
    return place.emit(relax.op.add(left, _negated(place, right)))


def _divide(place: Place, call: relax.Call) -> relax.Expr | None:
    """Times the inverse: the last digit may differ, as it does between any two libraries."""
    divisor = constant_value(call.args[1])
    if divisor is not None:
        if not divisor.all():
            return None
        inverse: relax.Expr = relax.const((1 / divisor.astype(np.float64)).astype(np.float32))
    elif bounds_of(place.graph, call.args[1])[0] > 0:
        inverse = _to_the(place, place.new(call.args[1]), -1)
    else:
        return None
    dividend = constant_value(call.args[0])
    if dividend is not None and (dividend == 1).all() and dividend.size == 1:
        return inverse
    return place.emit(relax.op.multiply(place.new(call.args[0]), inverse))


_LEAST = 2e-38
"""Next to any square that matters it is nothing; it makes the root of 0 be 0."""


def _to_the(place: Place, value: relax.Expr, exponent: float, bias: float = 0) -> relax.Expr:
    """A power of positive numbers: x / (x^2)^beta, as LOCAL_RESPONSE_NORMALIZATION has it."""
    shape = static_shape(value) or ()
    last = shape[-1] if shape else 1
    flat = place.emit(relax.op.reshape(value, (1, math.prod(shape) // last, last, 1)))
    square = place.emit(relax.op.multiply(flat, flat))
    one = relax.const(np.ones((1, 1, 1, 1), np.float32))
    summed = place.emit(relax.op.nn.conv2d(square, one, data_layout="NHWC", kernel_layout="HWIO"))
    biased = place.emit(relax.op.add(summed, real(bias)))
    power = place.emit(relax.op.power(biased, real((1 - exponent) / 2)))
    return place.emit(relax.op.reshape(place.emit(relax.op.divide(flat, power)), shape))


def _sqrt(place: Place, call: relax.Call) -> relax.Expr | None:
    if bounds_of(place.graph, call.args[0])[0] < 0:
        return None  # of a negative number it would not be NaN
    return _to_the(place, place.new(call.args[0]), 0.5, bias=_LEAST)


def _rsqrt(place: Place, call: relax.Call) -> relax.Expr | None:
    if bounds_of(place.graph, call.args[0])[0] <= 0:
        return None  # of zero it would not be infinite
    return _to_the(place, place.new(call.args[0]), -0.5)


def _exp(place: Place, call: relax.Call) -> relax.Expr | None:
    """Of numbers up to 0, s / (1 - s) with s the logistic function of them, at most 1/2."""
    if bounds_of(place.graph, call.args[0])[1] > 0:
        return None
    s = place.emit(relax.op.sigmoid(place.new(call.args[0])))
    rest = place.emit(relax.op.add(_negated(place, s), real(1)))
    if place.level >= opset()["DIV"].level:
        return place.emit(relax.op.divide(s, rest))
    return place.emit(relax.op.multiply(s, _to_the(place, rest, -1)))


def _clip(place: Place, call: relax.Call) -> relax.Expr | None:
    """By RELU at one end, RELU6 at both: a few units in the last place of the bounds."""
    low, high = (float(getattr(arg, "value", arg)) for arg in call.args[1:3])
    value = place.new(call.args[0])
    if (low, high) in ((0, 6), (-1, 1)) or (low == 0 and math.isinf(high)) or low >= high:
        return None
    if max(abs(bound) for bound in (low, high) if math.isfinite(bound)) > LARGEST_BOUND:
        return None
    if math.isinf(high):
        return _shifted(place, _relu(place, _shifted(place, value, -low)), low)
    if math.isinf(low):
        below = _relu(place, _shifted(place, _negated(place, value), high))
        return _shifted(place, _negated(place, below), high)
    scale = 6 / (high - low)
    if not math.isfinite(scale) or not math.isfinite(low * scale):
        return None
    scaled = place.emit(relax.op.multiply(value, real(scale)))
    cut = place.emit(relax.op.clip(_shifted(place, scaled, -low * scale), 0, 6))
    return _shifted(place, place.emit(relax.op.multiply(cut, real(1 / scale))), low)


def _cut_by_constant(is_above: bool) -> Composite:
    """relu(x - c) + c, which is the larger; the smaller is the larger of the negatives, negated."""

    def cut(place: Place, call: relax.Call) -> relax.Expr | None:
        variables = [arg for arg in call.args if constant_value(arg) is None]
        constants = [arg for arg in call.args if constant_value(arg) is not None]
        limits = [constant_value(arg) for arg in constants]
        if len(limits) != 1 or limits[0] is None or np.abs(limits[0]).max() > LARGEST_BOUND:
            return None
        value = place.new(variables[0])
        inner = _negated(place, value) if is_above else value
        limit = constants[0] if is_above else _negated(place, constants[0])
        over = _relu(place, place.emit(relax.op.add(inner, limit)))
        over = _negated(place, over) if is_above else over
        return place.emit(relax.op.add(over, constants[0]))

    return cut


def _shifted(place: Place, value: relax.Expr, by: float) -> relax.Expr:
    return value if by == 0 else place.emit(relax.op.add(value, real(by)))


def _prelu(place: Place, call: relax.Call) -> relax.Expr | None:
    """relu(x) - slope * relu(-x)."""
    slope, rank = constant_value(call.args[1]), len(static_shape(call) or ())
    if slope is None:
        return None
    dims = [1] * rank
    dims[int(call.attrs.axis) % rank] = slope.size
    value = place.new(call.args[0])
    factor = relax.const(np.negative(slope.reshape(dims), dtype=np.float32))
    scaled = place.emit(relax.op.multiply(_relu(place, _negated(place, value)), factor))
    return place.emit(relax.op.add(_relu(place, value), scaled))


LATER: Mapping[str, tuple[int, Composite]] = {
    "relax.negative": (opset()["NEG"].level, _negative),
    "relax.abs": (opset()["ABS"].level, _abs),
    "relax.subtract": (opset()["SUB"].level, _subtract),
    "relax.divide": (opset()["DIV"].level, _divide),
    "relax.sqrt": (opset()["SQRT"].level, _sqrt),
    "relax.rsqrt": (opset()["RSQRT"].level, _rsqrt),
    "relax.exp": (opset()["EXP"].level, _exp),
    "relax.clip": (opset()["MINIMUM"].level, _clip),
    "relax.maximum": (opset()["MAXIMUM"].level, _cut_by_constant(is_above=False)),
    "relax.minimum": (opset()["MINIMUM"].level, _cut_by_constant(is_above=True)),
    "relax.nn.prelu": (opset()["PRELU"].level, _prelu),
}
"""The first level that does without it, and the composite."""
