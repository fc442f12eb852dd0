"""Arithmetic, comparisons, activations and conversions, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.graph import dtype_of

Unary = Callable[[relax.Expr], relax.Expr]
Binary = Callable[[relax.Expr, relax.Expr], relax.Expr]


def _unary(function: Unary) -> Converter:
    return lambda op: op.give(function(op.real(0)))


def _binary(function: Binary) -> Converter:
    return lambda op: op.give(op.activated(op.emit(function(op.real(0), op.real(1)))))


def _squared_difference(op: Emitter) -> None:
    difference = op.emit(relax.op.subtract(op.real(0), op.real(1)))
    op.give(relax.op.multiply(difference, difference))


def _add_n(op: Emitter) -> None:
    total = op.real(0)
    for position in range(1, len(op.operator.inputs)):
        total = op.emit(relax.op.add(total, op.real(position)))
    op.give(total)


def _prelu(op: Emitter) -> None:
    """One slope a channel where the slopes are constant, composed for any other shape."""
    data, slopes = op.real(0), op.shape(1)
    channels = op.shape_of(data)[-1]
    if op.constant(1) is not None and slopes and slopes[-1] == channels == np.prod(slopes):
        numbers = op.tensor(1).quantization
        alpha: relax.Expr = relax.const(op.needed(1).reshape(-1), op.tensor(1).dtype)
        if numbers is not None:
            alpha = op.dequantized(alpha, numbers)
        op.give(relax.op.nn.prelu(data, alpha, axis=len(op.shape_of(data)) - 1))
        return
    zero = relax.const(0.0, dtype_of(data))
    negative = op.emit(relax.op.multiply(op.emit(relax.op.minimum(data, zero)), op.real(1)))
    op.give(relax.op.add(op.emit(relax.op.nn.relu(data)), negative))


def _leaky_relu(op: Emitter) -> None:
    op.give(relax.op.nn.leakyrelu(op.real(0), float(op.option("alpha", 0.0))))


def _elu(op: Emitter) -> None:
    data = op.real(0)
    one = relax.const(1.0, dtype_of(data))
    below = op.emit(relax.op.minimum(data, relax.const(0.0, dtype_of(data))))
    curve = op.emit(relax.op.subtract(op.emit(relax.op.exp(below)), one))
    op.give(relax.op.add(op.emit(relax.op.nn.relu(data)), curve))


def _hard_swish(op: Emitter) -> None:
    data = op.real(0)
    three, sixth = (relax.const(v, dtype_of(data)) for v in (3.0, 1.0 / 6.0))
    gate = op.emit(relax.op.clip(op.emit(relax.op.add(data, three)), 0.0, 6.0))
    op.give(relax.op.multiply(op.emit(relax.op.multiply(data, gate)), sixth))


def _gelu(op: Emitter) -> None:
    gelu = relax.op.nn.gelu_tanh if op.option("approximate", False) else relax.op.nn.gelu
    op.give(gelu(op.real(0)))


def _softmax(op: Emitter) -> None:
    data, beta = op.real(0), float(op.option("beta", 1.0))
    if beta != 1.0:
        data = op.emit(relax.op.multiply(data, relax.const(beta, dtype_of(data))))
    op.give(relax.op.nn.softmax(data, axis=-1))


def _log_softmax(op: Emitter) -> None:
    op.give(relax.op.nn.log_softmax(op.real(0), axis=-1))


def _cast(op: Emitter) -> None:
    # Integers are converted as they are stored: a cast knows no scales.
    if op.tensor(0).is_wide or op.output().is_wide:
        raise op.unsupported("casts 16 bits that stand for real numbers")
    op.give_raw(relax.op.astype(op.raw(0), op.output().dtype))


def _quantize(op: Emitter) -> None:
    op.give(op.real(0))


def _densify(op: Emitter) -> None:
    op.give(op.real(0))  # the constant was made dense when it was read


def _dequantize(op: Emitter) -> None:
    value = op.real(0)
    if dtype_of(value) != op.output().dtype:  # float16 weights
        value = relax.op.astype(value, op.output().dtype)
    op.give(value)


def _select(op: Emitter) -> None:
    condition, chosen, other = op.raw(0), op.real(1), op.real(2)
    rank = len(op.shape_of(chosen))
    if op.operator.name == "SELECT" and 1 == len(op.shape(0)) < rank:
        # A vector chooses whole rows, where broadcasting would choose columns.
        condition = op.emit(relax.op.reshape(condition, (-1, *[1] * (rank - 1))))
    op.give(relax.op.where(condition, chosen, other))


CONVERTERS: Mapping[str, Converter] = {
    "ABS": _unary(relax.op.abs),
    "ADD": _binary(relax.op.add),
    "ADD_N": _add_n,
    "ATAN2": _binary(relax.op.atan2),
    "CAST": _cast,
    "CEIL": _unary(relax.op.ceil),
    "COS": _unary(relax.op.cos),
    "DENSIFY": _densify,
    "DEQUANTIZE": _dequantize,
    "DIV": _binary(relax.op.divide),
    "ELU": _elu,
    "EQUAL": _binary(relax.op.equal),
    "EXP": _unary(relax.op.exp),
    "FLOOR": _unary(relax.op.floor),
    "FLOOR_DIV": _binary(relax.op.floor_divide),
    "FLOOR_MOD": _binary(relax.op.floor_mod),
    "GELU": _gelu,
    "GREATER": _binary(relax.op.greater),
    "GREATER_EQUAL": _binary(relax.op.greater_equal),
    "HARD_SWISH": _hard_swish,
    "LEAKY_RELU": _leaky_relu,
    "LESS": _binary(relax.op.less),
    "LESS_EQUAL": _binary(relax.op.less_equal),
    "LOG": _unary(relax.op.log),
    "LOGICAL_AND": _binary(relax.op.logical_and),
    "LOGICAL_NOT": _unary(relax.op.logical_not),
    "LOGICAL_OR": _binary(relax.op.logical_or),
    "LOGISTIC": _unary(relax.op.sigmoid),
    "LOG_SOFTMAX": _log_softmax,
    "MAXIMUM": _binary(relax.op.maximum),
    "MINIMUM": _binary(relax.op.minimum),
    "MUL": _binary(relax.op.multiply),
    "NEG": _unary(relax.op.negative),
    "NOT_EQUAL": _binary(relax.op.not_equal),
    "POW": _binary(relax.op.power),
    "PRELU": _prelu,
    "QUANTIZE": _quantize,
    "RELU": _unary(relax.op.nn.relu),
    "RELU6": _unary(lambda v: relax.op.clip(v, 0.0, 6.0)),
    "RELU_0_TO_1": _unary(lambda v: relax.op.clip(v, 0.0, 1.0)),
    "RELU_N1_TO_1": _unary(lambda v: relax.op.clip(v, -1.0, 1.0)),
    "ROUND": _unary(relax.op.round),
    "RSQRT": _unary(relax.op.rsqrt),
    "SELECT": _select,
    "SELECT_V2": _select,
    "SIGN": _unary(relax.op.sign),
    "SIN": _unary(relax.op.sin),
    "SOFTMAX": _softmax,
    "SQRT": _unary(relax.op.sqrt),
    "SQUARE": _unary(lambda v: relax.op.multiply(v, v)),
    "SQUARED_DIFFERENCE": _squared_difference,
    "SUB": _binary(relax.op.subtract),
    "TANH": _unary(relax.op.tanh),
}
"""By TFLite operator name."""
