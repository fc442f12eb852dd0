"""LSTM, GRU and RNN of ONNX, step by step: NNAPI's networks have no loops to run them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.frontends.onnx_operands import Converter, Inputs, Scope, constant, operand
from workers.graph.graph import dtype_of, static_shape

Array = NDArray[Any]
State = tuple[relax.Expr, ...]


@dataclass(frozen=True)
class _Layer:
    """One direction of a layer while it is unrolled.

    Attributes:
        emit: binds an expression.
        recurrent: weights of the state, [gates * hidden, hidden].
        bias: of the recurrent product, [gates * hidden].
        hidden: size of the state.
        attrs: the node's attributes.
    """

    emit: Callable[[relax.Expr], relax.Expr]
    recurrent: Array
    bias: Array
    hidden: int
    attrs: dict[str, Any]

    def product(self, state: relax.Expr, begin: int, end: int, with_bias: bool) -> relax.Expr:
        """The state times the weights of some gates."""
        rows = slice(begin * self.hidden, end * self.hidden)
        weight = relax.const(np.ascontiguousarray(self.recurrent[rows].T))
        value = self.emit(relax.op.matmul(state, weight))
        if with_bias and self.bias[rows].any():
            value = self.emit(relax.op.add(value, relax.const(self.bias[rows])))
        return value

    def gates(self, value: relax.Expr, count: int) -> list[relax.Expr]:
        """The parts of a value that has several gates side by side."""
        parts = self.emit(relax.op.split(value, count, -1))
        return [self.emit(relax.TupleGetItem(parts, i)) for i in range(count)]


Activations = Sequence[tuple[bytes, ...]]
"""Choices of activations that a step computes."""

Step = Callable[[_Layer, relax.Expr, State], State]
"""The layer, a step's input product with its bias, and the state, to the next state."""


def _lstm_step(layer: _Layer, step: relax.Expr, state: State) -> State:
    hidden, cell = state
    emit = layer.emit
    total = emit(relax.op.add(step, layer.product(hidden, 0, 4, with_bias=True)))
    i, o, f, c = layer.gates(total, 4)
    kept = emit(relax.op.multiply(emit(relax.op.sigmoid(f)), cell))
    added = emit(relax.op.multiply(emit(relax.op.sigmoid(i)), emit(relax.op.tanh(c))))
    cell = emit(relax.op.add(kept, added))
    return emit(relax.op.multiply(emit(relax.op.sigmoid(o)), emit(relax.op.tanh(cell)))), cell


def _gru_step(layer: _Layer, step: relax.Expr, state: State) -> State:
    (hidden,) = state
    emit = layer.emit
    update_in, reset_in, new_in = layer.gates(step, 3)
    update_h, reset_h = layer.gates(layer.product(hidden, 0, 2, with_bias=True), 2)
    update = emit(relax.op.sigmoid(emit(relax.op.add(update_in, update_h))))
    reset = emit(relax.op.sigmoid(emit(relax.op.add(reset_in, reset_h))))
    if layer.attrs.get("linear_before_reset", 0):
        inner = emit(relax.op.multiply(reset, layer.product(hidden, 2, 3, with_bias=True)))
    else:
        masked = emit(relax.op.multiply(reset, hidden))
        inner = layer.product(masked, 2, 3, with_bias=True)
    new = emit(relax.op.tanh(emit(relax.op.add(new_in, inner))))
    # (1 - update) * new + update * hidden
    moved = emit(relax.op.multiply(update, emit(relax.op.subtract(hidden, new))))
    return (emit(relax.op.add(new, moved)),)


def _rnn_step(layer: _Layer, step: relax.Expr, state: State) -> State:
    total = layer.emit(relax.op.add(step, layer.product(state[0], 0, 1, with_bias=True)))
    activation = layer.attrs.get("activations", (b"Tanh",))[0]
    function = {b"Tanh": relax.op.tanh, b"Relu": relax.op.nn.relu}[activation]
    return (layer.emit(function(total)),)


def _recurrent(gates: int, states: int, step: Step, activations: Activations) -> Converter:
    def convert(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
        is_batch_first = bool(attrs.get("layout", 0))
        if is_batch_first:
            inputs = [
                _turned(data, scope) if at in (0, 5, 6) else data for at, data in enumerate(inputs)
            ]
        _check(inputs, attrs, activations)
        directions = {b"forward": (1,), b"reverse": (-1,), b"bidirectional": (1, -1)}
        runs = [
            _run(inputs, attrs, scope, number, direction, gates, states, step)
            for number, direction in enumerate(directions[attrs.get("direction", b"forward")])
        ]
        outputs = [scope.emit(relax.op.stack([sequence for sequence, _ in runs], axis=1))]
        for index in range(states):
            finals = [state[index] for _, state in runs]
            outputs.append(scope.emit(relax.op.stack(finals, axis=0)))
        if is_batch_first:  # [batch, steps, directions, hidden], and [batch, directions, hidden]
            sequence = scope.emit(relax.op.permute_dims(outputs[0], [2, 0, 1, 3]))
            outputs = [sequence, *(_turned(last, scope) for last in outputs[1:])]
        return relax.Tuple(outputs)

    return convert


def _turned(data: relax.Expr | None, scope: Scope) -> relax.Expr | None:
    return None if data is None else scope.emit(relax.op.permute_dims(data, [1, 0, 2]))


def _check(inputs: Inputs, attrs: dict[str, Any], activations: Activations) -> None:
    shape, lengths = static_shape(inputs[0]), constant(inputs, 4)
    if shape is None or any(constant(inputs, at) is None for at in (1, 2)):
        raise ValueError("the sequence needs a known length and the weights have to be constants")
    if operand(inputs, 4) is not None and (lengths is None or (lengths != shape[0]).any()):
        raise ValueError("sequences of several lengths in one batch are not supported")
    if operand(inputs, 7) is not None or "clip" in attrs:
        raise ValueError("peepholes and clipping are not supported")
    given = tuple(attrs.get("activations", activations[0]))
    usual = [chosen * directions for chosen in activations for directions in (1, 2)]
    if attrs.get("input_forget", 0) or given not in usual:
        raise ValueError("activations other than the usual ones are not supported")


def _run(
    inputs: Inputs, attrs: dict[str, Any], scope: Scope, number: int, direction: int,
    gates: int, states: int, step: Step,
) -> tuple[relax.Expr, State]:  # fmt: skip
    """One direction over the whole sequence: [steps, batch, hidden] and the last state."""
    weight, recurrent, biases = (constant(inputs, at) for at in (1, 2, 3))
    assert weight is not None  # _check asked
    assert recurrent is not None
    length, batch, _ = static_shape(inputs[0]) or (0, 0, 0)
    hidden, dtype = int(recurrent.shape[2]), dtype_of(inputs[0])
    if biases is None:
        biases = np.zeros((number + 1, 2 * gates * hidden), dtype)
    own, other = np.split(biases[number], 2)
    layer = _Layer(scope.emit, recurrent[number], other, hidden, attrs)
    product = scope.emit(
        relax.op.matmul(inputs[0], relax.const(np.ascontiguousarray(weight[number].T)))
    )
    product = scope.emit(relax.op.add(product, relax.const(own)))
    state = tuple(
        _initial(operand(inputs, 5 + index), number, (batch, hidden), dtype, scope)
        for index in range(states)
    )
    outputs = []
    for position in range(length)[::direction]:
        row = scope.emit(relax.op.strided_slice(product, [0], [position], [position + 1]))
        one = scope.emit(relax.op.squeeze(row, [0]))
        state = step(layer, one, state)
        outputs.append(state[0])
    return scope.emit(relax.op.stack(outputs[::direction], axis=0)), state


def _initial(
    given: relax.Expr | None, number: int, shape: tuple[int, int], dtype: str, scope: Scope
) -> relax.Expr:
    if given is None:
        return relax.const(np.zeros(shape, dtype))
    one = scope.emit(relax.op.strided_slice(given, [0], [number], [number + 1]))
    return scope.emit(relax.op.squeeze(one, [0]))


CONVERTERS: dict[str, Converter] = {
    "GRU": _recurrent(3, 1, _gru_step, [(b"Sigmoid", b"Tanh")]),
    "LSTM": _recurrent(4, 2, _lstm_step, [(b"Sigmoid", b"Tanh", b"Tanh")]),
    "RNN": _recurrent(1, 1, _rnn_step, [(b"Tanh",), (b"Relu",)]),
}
"""By ONNX operation name."""
