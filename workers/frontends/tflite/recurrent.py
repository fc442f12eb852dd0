"""Recurrent layers; every run begins with a state of zeros."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.frontends.tflite.lstm import (
    BACKWARD,
    FORWARD,
    ONE_WAY,
    Places,
    basic_lstm,
    lstm_operands,
)
from workers.frontends.tflite.steps import (
    batch_of,
    layer_of,
    outputs_of,
    part_of,
    require_states,
    weights_of,
    zeros,
)
from workers.graph.graph import constant_value
from workers.graph.recurrence.layer import LSTM, RNN

_BASIC = 1
"""LSTMKernelType."""
_LSTM_AUXILIARY, _RNN_AUXILIARY = 39, 9
_SVDF_STATE = 4


def _sequence_lstm(op: Emitter) -> None:
    require_states(op, *ONE_WAY.states)
    op.give(_lstm_outputs(op, is_sequence=True, fw=ONE_WAY))


def _lstm(op: Emitter) -> None:
    if op.option("kernelType", 0) == _BASIC:
        basic_lstm(op)
        return
    require_states(op, *ONE_WAY.states)
    op.give(_lstm_outputs(op, is_sequence=False, fw=ONE_WAY))


def _two_way_lstm(op: Emitter) -> None:
    require_states(op, *FORWARD.states, *BACKWARD.states)
    _require_one_input(op, _LSTM_AUXILIARY)
    whole = _lstm_outputs(op, is_sequence=True, fw=FORWARD, bw=BACKWARD)
    _give_both(op, whole, op.shape(FORWARD.recurrent + 1)[1])


def _lstm_outputs(op: Emitter, is_sequence: bool, **places: Places) -> relax.Expr:
    batch = batch_of(op, is_sequence)
    operands = {way: lstm_operands(op, own, batch) for way, own in places.items()}
    return outputs_of(op, layer_of(op, LSTM, " ".join(places)), _prefixed(operands))


def _sequence_rnn(op: Emitter) -> None:
    require_states(op, 4)
    op.give(_rnn_outputs(op, is_sequence=True, fw=1))


def _rnn(op: Emitter) -> None:
    require_states(op, 4)
    op.give(_rnn_outputs(op, is_sequence=False, fw=1))


def _two_way_rnn(op: Emitter) -> None:
    require_states(op, 4, 8)
    _require_one_input(op, _RNN_AUXILIARY)
    _give_both(op, _rnn_outputs(op, is_sequence=True, fw=1, bw=5), op.shape(2)[0])


def _rnn_outputs(op: Emitter, is_sequence: bool, **places: int) -> relax.Expr:
    """By way, the first of its inputs: weights, recurrent weights, bias."""
    batch = batch_of(op, is_sequence)
    operands = {
        way: {
            "weights": weights_of(op, first),
            "recurrent_weights": weights_of(op, first + 1),
            "bias": weights_of(op, first + 2),
            "state_in": zeros(batch, op.shape(first + 1)[0]),
        }
        for way, first in places.items()
    }
    return outputs_of(op, layer_of(op, RNN, " ".join(places)), _prefixed(operands))


def _prefixed(operands: Mapping[str, Mapping[str, relax.Expr]]) -> Mapping[str, relax.Expr]:
    return {f"{way}_{role}": one for way, own in operands.items() for role, one in own.items()}


def _require_one_input(op: Emitter, auxiliary: int) -> None:
    if op.has(auxiliary):
        raise op.unsupported("has an auxiliary input")


def _give_both(op: Emitter, whole: relax.Expr, width: int) -> None:
    """Outputs of two directions side by side, or apart; the first one's width."""
    if op.option("mergeOutputs", False):
        op.give(whole)
        return
    total = op.shape_of(whole)[2]
    for position, (begin, end) in enumerate(((0, width), (width, total))):
        op.give(part_of(op, whole, 2, begin, end), position)


def _svdf(op: Emitter) -> None:
    """Inputs: data, weights of features, weights of time, bias, state.

    The state holds the features of the steps before, all zeros: only the newest count, each by the
    last of its weights of time; `rank` neighbouring features make a unit. That is one product.
    """
    require_states(op, _SVDF_STATE)
    features, times = (constant_value(weights_of(op, place)) for place in (1, 2))
    if features is None or times is None:
        raise op.unsupported("takes its weights as constants only")
    rank = int(op.option("rank", 1))
    weighted = np.multiply(features, times[:, -1:])
    units = weighted.reshape(-1, rank, weighted.shape[1]).sum(1)
    weights = relax.const(np.ascontiguousarray(units.T, np.float32))
    result = op.emit(relax.op.matmul(op.real(0), weights))
    if op.has(3):
        result = op.emit(relax.op.add(result, weights_of(op, 3)))
    op.give(op.activated(result))


CONVERTERS: Mapping[str, Converter] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _two_way_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": _two_way_rnn,
    "LSTM": _lstm,
    "RNN": _rnn,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _sequence_rnn,
}
"""By TFLite operator name."""
