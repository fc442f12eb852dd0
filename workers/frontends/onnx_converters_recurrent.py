"""LSTM, GRU and RNN of ONNX, a layer as one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, operand, real_constant
from workers.graph.graph import dtype_of, static_shape
from workers.graph.recurrence.layer import (
    BACKWARD,
    BOTH,
    FORWARD,
    GRU,
    LSTM,
    RNN,
    Layer,
    Recurrence,
)

Array = NDArray[Any]

_DIRECTIONS = {"forward": FORWARD, "reverse": BACKWARD, "bidirectional": BOTH}

_GATES = ("input", "output", "forget", "cell")
"""ONNX's order."""

_PEEPHOLES = ("input", "output", "forget")
_STATES, _PEEPHOLE_WEIGHTS = 5, 7

_ACTIVATIONS = {GRU: ("sigmoid", "tanh"), LSTM: ("sigmoid", "tanh", "tanh"), RNN: ("tanh",)}
"""ONNX's own choice."""


def _layer(cell: str) -> Converter:
    def convert(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
        is_time_major = not attrs.get("layout", 0)
        direction = attrs.get("direction", b"forward").decode()
        directions = _DIRECTIONS[direction]
        layer = Layer(
            cell,
            _activation(cell, attrs, directions),
            directions,
            is_time_major,
            is_reset_late=bool(attrs.get("linear_before_reset", 0)),
        )
        _check(inputs, attrs, is_time_major)
        operands: dict[str, relax.Expr] = {"input": inputs[0]}
        for number, way in enumerate(layer.ways):
            arrays = _WEIGHTS[cell](*_own(inputs, number))
            operands |= {f"{way}_{role}": relax.const(array) for role, array in arrays.items()}
            for place, state in enumerate(layer.states, _STATES):
                value = _initial(inputs, place, number, layer, scope)
                operands[f"{way}_{state}"] = value
        return _results(Recurrence(layer, operands), scope)

    return convert


def _check(inputs: Inputs, attrs: dict[str, Any], is_time_major: bool) -> None:
    shape, lengths = static_shape(inputs[0]), real_constant(inputs, 4)
    if shape is None or any(real_constant(inputs, at) is None for at in (1, 2)):
        raise ValueError("the sequence needs a known length and the weights have to be constants")
    steps = shape[0 if is_time_major else 1]
    if operand(inputs, 4) is not None and (lengths is None or (lengths != steps).any()):
        raise ValueError("sequences of several lengths in one batch are not supported")
    for place in (3, _PEEPHOLE_WEIGHTS):
        if operand(inputs, place) is not None and real_constant(inputs, place) is None:
            raise ValueError("biases and peepholes have to be constants")
    if "clip" in attrs:
        raise ValueError("clipping is not supported")
    if attrs.get("input_forget", 0):
        raise ValueError("coupled gates are not supported")


def _activation(cell: str, attrs: dict[str, Any], directions: str) -> str:
    """The one that can be chosen: all but the gates', an LSTM's twice."""
    default = _ACTIVATIONS[cell]
    ways = len(directions.split())
    given = tuple(name.decode().lower() for name in attrs.get("activations", ())) or default * ways
    chosen = given[-1]
    usual = tuple(chosen if name == "tanh" else name for name in default)
    if given != usual * ways or chosen not in ("tanh", "relu", "sigmoid"):
        raise ValueError(f"activations {', '.join(given)} are not supported")
    return chosen


def _own(inputs: Inputs, number: int) -> tuple[Array, Array, Array, Array | None]:
    """Weights, recurrent weights, biases and peepholes of a direction."""
    weights, recurrent, biases, peepholes = (
        None if (array := real_constant(inputs, at)) is None else array[number]
        for at in (1, 2, 3, _PEEPHOLE_WEIGHTS)
    )
    assert weights is not None  # _check asked
    assert recurrent is not None
    if biases is None:
        biases = np.zeros(2 * len(weights), weights.dtype)
    return weights, recurrent, biases, peepholes


def _lstm_weights(
    weights: Array, recurrent: Array, biases: Array, peepholes: Array | None
) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for kind, joined in (("input_to", weights), ("recurrent_to", recurrent)):
        for gate, part in zip(_GATES, np.split(joined, 4), strict=True):
            found[f"{kind}_{gate}_weights"] = part
    for gate, part in zip(_GATES, np.split(np.add(*np.split(biases, 2)), 4), strict=True):
        found["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = part
    if peepholes is not None:
        for gate, part in zip(_PEEPHOLES, np.split(peepholes, 3), strict=True):
            found[f"cell_to_{gate}_weights"] = part
    return found


def _rnn_weights(
    weights: Array, recurrent: Array, biases: Array, _: Array | None
) -> dict[str, Array]:
    total = np.add(*np.split(biases, 2))
    return {"weights": weights, "recurrent_weights": recurrent, "bias": total}


def _gru_weights(
    weights: Array, recurrent: Array, biases: Array, _: Array | None
) -> dict[str, Array]:
    own, other = np.split(biases, 2)
    found = {"weights": weights, "recurrent_weights": recurrent}
    return {**found, "bias": own, "recurrent_bias": other}


_WEIGHTS = {GRU: _gru_weights, LSTM: _lstm_weights, RNN: _rnn_weights}


def _initial(inputs: Inputs, place: int, number: int, layer: Layer, scope: Scope) -> relax.Expr:
    """The state before the first step, [batch, hidden]; zeros where none is given."""
    batch_axis = 1 if layer.is_time_major else 0
    batch = (static_shape(inputs[0]) or ())[batch_axis]
    recurrent, given = real_constant(inputs, 2), operand(inputs, place)
    assert recurrent is not None  # _check asked
    hidden = int(recurrent.shape[2])
    if given is None:
        return relax.const(np.zeros((batch, hidden), dtype_of(inputs[0])))
    axis = 1 - batch_axis
    one = scope.emit(relax.op.strided_slice(given, [axis], [number], [number + 1]))
    return scope.emit(relax.op.reshape(one, (batch, hidden)))


def _results(recurrence: Recurrence, scope: Scope) -> relax.Tuple:
    """[steps, directions, batch, hidden] and [directions, batch, hidden], or batch first."""
    layer, emit = recurrence.layer, scope.emit
    batch, width, ways = recurrence.batch, recurrence.width(layer.ways[0]), len(layer.ways)
    call = emit(recurrence.call())
    whole, *states = (emit(relax.TupleGetItem(call, i)) for i in range(len(call.ty.fields)))
    first, second = recurrence.shape[:2]
    if layer.is_time_major and ways == 1:
        whole = emit(relax.op.reshape(whole, (first, 1, second, width)))
    else:
        whole = emit(relax.op.reshape(whole, (first, second, ways, width)))
        if layer.is_time_major:
            whole = emit(relax.op.permute_dims(whole, [0, 2, 1, 3]))
    results = [whole]
    axis = 0 if layer.is_time_major else 1
    shape = (1, batch, width) if layer.is_time_major else (batch, 1, width)
    for place in range(len(layer.states)):
        own = states[place :: len(layer.states)]
        last = [emit(relax.op.reshape(state, shape)) for state in own]
        results.append(last[0] if ways == 1 else emit(relax.op.concat(last, axis)))
    return relax.Tuple(results)


CONVERTERS: Mapping[str, Converter] = {cell: _layer(cell) for cell in (GRU, LSTM, RNN)}
"""By ONNX operation name."""
