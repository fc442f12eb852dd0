"""Converters of PyTorch's LSTM, GRU and RNN; TVM's own return wrong last states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.pytorch.reductions import Arguments, Converter, Emit
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.recurrence.layer import BOTH, FORWARD, GRU, LSTM, RNN, Layer, Recurrence

_GATES = ("input", "forget", "cell", "output")
"""PyTorch's order."""


def _layers(cell: str, activation: str) -> Converter:
    def convert(given: Arguments, emit: Emit) -> list[relax.Expr]:
        """Outputs of all steps, and last states [layers * directions, batch, hidden]."""
        if given["train"] and given["dropout"]:
            raise ValueError("dropout is only for training")
        directions = BOTH if given["bidirectional"] else FORWARD
        is_time_major = not given["batch_first"]
        layer = Layer(cell, activation, directions, is_time_major, is_reset_late=cell == GRU)
        before = list(given["hx"]) if cell == LSTM else [given["hx"]]
        params, ways = list(given["params"]), layer.ways
        each = len(params) // (int(given["num_layers"]) * len(ways))
        data, finals = given["input"], []
        for number in range(int(given["num_layers"])):
            operands: dict[str, relax.Expr] = {"input": data}
            for place, way in enumerate(ways, number * len(ways)):
                own = params[place * each : (place + 1) * each]
                found = {
                    **_WEIGHTS[cell](own, bool(given["has_biases"])),
                    **{
                        state: _taken(value, place, emit)
                        for state, value in zip(layer.states, before, strict=True)
                    },
                }
                operands |= {f"{way}_{role}": one for role, one in found.items()}
            call = emit(Recurrence(layer, operands).call())
            data, *states = (emit(relax.TupleGetItem(call, i)) for i in range(len(call.ty.fields)))
            finals += [states[k : k + len(before)] for k in range(0, len(states), len(before))]
        return [data, *(_stacked(column, emit) for column in zip(*finals, strict=True))]

    return convert


def _numbers(params: Sequence[Any], has_biases: bool) -> list[np.ndarray[Any, Any]]:
    """Weights, recurrent weights, biases of both, and a projection if there is one."""
    arrays = [constant_value(one) for one in params]
    known = [np.asarray(one) for one in arrays if one is not None]
    if len(known) < len(arrays):
        raise ValueError("weights have to be constants")
    weights, recurrent, *rest = known
    if not has_biases:
        rest = [np.zeros(len(weights), weights.dtype)] * 2 + rest
    return [weights, recurrent, *rest]


def _lstm_weights(params: Sequence[Any], has_biases: bool) -> Mapping[str, relax.Expr]:
    weights, recurrent, own, other, *projection = _numbers(params, has_biases)
    found, biases = {}, own + other
    for i, gate in enumerate(_GATES):
        found[f"input_to_{gate}_weights"] = np.split(weights, 4)[i]
        found[f"recurrent_to_{gate}_weights"] = np.split(recurrent, 4)[i]
        found["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = np.split(biases, 4)[i]
    if projection:
        (found["projection_weights"],) = projection
    return {role: relax.const(np.ascontiguousarray(array)) for role, array in found.items()}


def _rnn_weights(params: Sequence[Any], has_biases: bool) -> Mapping[str, relax.Expr]:
    weights, recurrent, own, other = _numbers(params, has_biases)
    arrays = {"weights": weights, "recurrent_weights": recurrent, "bias": own + other}
    return {role: relax.const(array) for role, array in arrays.items()}


def _gru_weights(params: Sequence[Any], has_biases: bool) -> Mapping[str, relax.Expr]:
    """PyTorch has the gates reset, update and new."""
    found = {}
    names = ("weights", "recurrent_weights", "bias", "recurrent_bias")
    for name, array in zip(names, _numbers(params, has_biases), strict=True):
        reset, update, new = np.split(array, 3)
        found[name] = relax.const(np.concatenate([update, reset, new]))
    return found


_WEIGHTS = {GRU: _gru_weights, LSTM: _lstm_weights, RNN: _rnn_weights}


def _taken(states: relax.Expr, place: int, emit: Emit) -> relax.Expr:
    """One layer's and direction's state [batch, width]; of a constant a constant."""
    array = constant_value(states)
    if array is not None:
        return relax.const(np.ascontiguousarray(array[place]), dtype_of(states))
    one = emit(relax.op.strided_slice(states, [0], [place], [place + 1]))
    return emit(relax.op.reshape(one, (static_shape(states) or ())[1:]))


def _stacked(states: Sequence[relax.Expr], emit: Emit) -> relax.Expr:
    shape = (1, *(static_shape(states[0]) or ()))
    rows = [emit(relax.op.reshape(state, shape)) for state in states]
    return rows[0] if len(rows) == 1 else emit(relax.op.concat(rows, 0))


CONVERTERS: Mapping[str, Converter] = {
    "gru.input": _layers(GRU, "tanh"),
    "lstm.input": _layers(LSTM, "tanh"),
    "rnn_relu.input": _layers(RNN, "relu"),
    "rnn_tanh.input": _layers(RNN, "tanh"),
}
"""By the name of PyTorch's operation."""
