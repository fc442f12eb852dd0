"""Recurrent layers, unrolled step by step; every run begins with a state of zeros."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.frontends.tflite.lstm import (
    BACKWARD,
    FORWARD,
    ONE_WAY,
    basic_lstm,
    lstm_answers,
)
from workers.frontends.tflite.steps import (
    Sequence,
    add,
    joined,
    product,
    require_states,
    sequence_of,
    single_step,
    weights_of,
    with_before,
    zeros,
)

_BASIC = 1
"""LSTMKernelType."""
_LSTM_AUXILIARY, _RNN_AUXILIARY = 39, 9
_SVDF_STATE = 4


def _sequence_lstm(op: Emitter) -> None:
    require_states(op, *ONE_WAY.states)
    op.give(joined(op, lstm_answers(op, ONE_WAY, sequence_of(op))))


def _lstm(op: Emitter) -> None:
    if op.option("kernelType", 0) == _BASIC:
        basic_lstm(op)
        return
    require_states(op, *ONE_WAY.states)
    (answer,) = lstm_answers(op, ONE_WAY, single_step(op))
    op.give(answer)


def _two_way_lstm(op: Emitter) -> None:
    require_states(op, *FORWARD.states, *BACKWARD.states)
    _require_one_input(op, _LSTM_AUXILIARY)
    sequence = sequence_of(op)
    forward = lstm_answers(op, FORWARD, sequence)
    _give_both(op, forward, lstm_answers(op, BACKWARD, sequence.backward()))


def _sequence_rnn(op: Emitter) -> None:
    require_states(op, 4)
    op.give(joined(op, _rnn_answers(op, 1, sequence_of(op))))


def _rnn(op: Emitter) -> None:
    require_states(op, 4)
    (answer,) = _rnn_answers(op, 1, single_step(op))
    op.give(answer)


def _two_way_rnn(op: Emitter) -> None:
    require_states(op, 4, 8)
    _require_one_input(op, _RNN_AUXILIARY)
    sequence = sequence_of(op)
    forward = _rnn_answers(op, 1, sequence)
    _give_both(op, forward, _rnn_answers(op, 5, sequence.backward()))


def _rnn_answers(op: Emitter, first: int, sequence: Sequence) -> list[relax.Expr]:
    """Inputs from `first` on: weights, recurrent weights, bias."""
    inputs = product(op, sequence.rows, first, first + 2)
    weights = weights_of(op, first + 1, (1, 0))
    hidden = zeros(sequence.batch, op.shape(first + 1)[0])
    answers = []
    for rows in sequence.steps():
        hidden = op.activated(with_before(op, inputs, rows, hidden, weights))
        answers.append(hidden)
    return sequence.in_order(answers)


def _require_one_input(op: Emitter, auxiliary: int) -> None:
    if op.has(auxiliary):
        raise op.unsupported("has an auxiliary input")


def _give_both(op: Emitter, forward: list[relax.Expr], backward: list[relax.Expr]) -> None:
    ways = [joined(op, answers) for answers in (forward, backward)]
    if op.option("mergeOutputs", False):
        op.give(relax.op.concat(ways, axis=-1))
        return
    for position, way in enumerate(ways):
        op.give(way, position)


def _svdf(op: Emitter) -> None:
    """Inputs: data, weights of features, weights of time, bias, state.

    The state holds the features of the steps before, all zeros: only the newest count, each by the
    last of its weights of time; `rank` neighbouring features make a unit.
    """
    require_states(op, _SVDF_STATE)
    last = op.shape(2)[1]
    weights = op.emit(relax.op.strided_slice(weights_of(op, 2), [1], [last - 1], [last]))
    features = product(op, op.real(0), 1, None)
    count, rank = op.shape(1)[0], int(op.option("rank", 1))
    weighted = op.emit(relax.op.multiply(features, op.emit(relax.op.reshape(weights, (1, count)))))
    batch = op.shape(0)[0]
    grouped = op.emit(relax.op.reshape(weighted, (batch, count // rank, rank)))
    units = op.emit(relax.op.sum(grouped, [2]))
    op.give(op.activated(add(op, units, weights_of(op, 3)) if op.has(3) else units))


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
