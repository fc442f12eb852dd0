"""Recurrent layers over a whole sequence, step by step; every run begins with a state of zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter

GATES = ("input", "forget", "cell", "output")
"""Order of an LSTM's weights, recurrent weights (after them) and biases among its inputs."""
WEIGHTS, RECURRENT, PEEPHOLES, BIASES = 1, 5, 9, 12
PROJECTION, PROJECTION_BIAS, LSTM_STATE, NORMS = 16, 17, 18, 20
RNN_STATE = 4


@dataclass(frozen=True)
class _Cell:
    """An LSTM's operands, read once for all steps.

    Attributes:
        inputs: the gates of all steps from the data alone, biases added: [steps * batch, cells].
        recurrent: weights of the output before, by gate.
        peepholes: weights of the cell's state, by gate; where the cell has them.
    """

    inputs: Mapping[str, relax.Expr]
    recurrent: Mapping[str, relax.Expr]
    peepholes: Mapping[str, relax.Expr]
    projection: relax.Expr | None
    projection_bias: relax.Expr | None


def _lstm(op: Emitter) -> None:
    _require_plain(op, (LSTM_STATE, LSTM_STATE + 1), range(NORMS, NORMS + 4))
    data, steps, batch = _by_steps(op)
    taken = [i for i, gate in enumerate(GATES) if gate != "input" or op.has(WEIGHTS)]
    cell = _Cell(
        {GATES[i]: _product(op, data, WEIGHTS + i, BIASES + i) for i in taken},
        {GATES[i]: op.real(RECURRENT + i, (1, 0)) for i in taken},
        {
            gate: op.real(PEEPHOLES + i)
            for i, gate in enumerate(("input", "forget", "output"))
            if op.has(PEEPHOLES + i)
        },
        op.real(PROJECTION, (1, 0)) if op.has(PROJECTION) else None,
        op.real(PROJECTION_BIAS) if op.has(PROJECTION_BIAS) else None,
    )
    cells, width = op.shape(RECURRENT + 1)
    hidden: relax.Expr = relax.const(np.zeros((batch, width), np.float32))
    state: relax.Expr = relax.const(np.zeros((batch, cells), np.float32))
    answers = []
    for step in range(steps):
        hidden, state = _lstm_step(
            op, cell, slice(step * batch, step * batch + batch), hidden, state
        )
        answers.append(hidden)
    _give_steps(op, answers)


def _lstm_step(
    op: Emitter, cell: _Cell, rows: slice, hidden: relax.Expr, state: relax.Expr
) -> tuple[relax.Expr, relax.Expr]:
    """Output and state after one more step."""

    def gate(name: str, memory: relax.Expr) -> relax.Expr:
        total = _with_before(op, cell.inputs[name], rows, hidden, cell.recurrent[name])
        if name in cell.peepholes:
            seen = op.emit(relax.op.multiply(memory, cell.peepholes[name]))
            total = op.emit(relax.op.add(total, seen))
        return total

    forget = op.emit(relax.op.sigmoid(gate("forget", state)))
    if "input" in cell.inputs:
        entry = op.emit(relax.op.sigmoid(gate("input", state)))
    else:  # coupled: what is not forgotten does not enter
        entry = op.emit(relax.op.subtract(relax.const(1.0, "float32"), forget))
    candidate = op.activated(gate("cell", state))
    kept = op.emit(relax.op.multiply(forget, state))
    state = op.emit(relax.op.add(kept, op.emit(relax.op.multiply(entry, candidate))))
    state = _clipped(op, state, "cellClip")
    output = op.emit(relax.op.sigmoid(gate("output", state)))
    result = op.emit(relax.op.multiply(output, op.activated(state)))
    if cell.projection is not None:
        result = op.emit(relax.op.matmul(result, cell.projection))
        if cell.projection_bias is not None:
            result = op.emit(relax.op.add(result, cell.projection_bias))
        result = _clipped(op, result, "projClip")
    return result, state


def _rnn(op: Emitter) -> None:
    """Inputs: data, weights, recurrent weights, bias, state."""
    _require_plain(op, (RNN_STATE,), ())
    data, steps, batch = _by_steps(op)
    inputs, weights = _product(op, data, 1, 3), op.real(2, (1, 0))
    hidden: relax.Expr = relax.const(np.zeros((batch, op.shape(2)[0]), np.float32))
    answers = []
    for step in range(steps):
        rows = slice(step * batch, step * batch + batch)
        hidden = op.activated(_with_before(op, inputs, rows, hidden, weights))
        answers.append(hidden)
    _give_steps(op, answers)


def _require_plain(op: Emitter, states: tuple[int, ...], norms: range | tuple[int, ...]) -> None:
    if op.output().dtype != "float32" or op.tensor(0).dtype != "float32":
        raise op.unsupported("computes on integers; recurrent layers are taken in float32")
    if any(op.has(position) for position in norms):
        raise op.unsupported("normalizes its gates")
    if op.option("diagonalRecurrentTensors", False):
        raise op.unsupported("has diagonal recurrent weights")
    if any(not op.has(p) or not op.tensor(p).is_variable for p in states):
        raise op.unsupported("is given a state to begin with")


def _by_steps(op: Emitter) -> tuple[relax.Expr, int, int]:
    """The data as rows, all of one step together; number of steps and of sequences."""
    value, (first, second, width) = op.real(0), op.shape(0)
    if not op.option("timeMajor", False):
        value = op.emit(relax.op.permute_dims(value, (1, 0, 2)))
        first, second = second, first
    return op.emit(relax.op.reshape(value, (first * second, width))), first, second


def _product(op: Emitter, data: relax.Expr, weights: int, bias: int) -> relax.Expr:
    result = op.emit(relax.op.matmul(data, op.real(weights, (1, 0))))
    return op.emit(relax.op.add(result, op.real(bias))) if op.has(bias) else result


def _with_before(
    op: Emitter, inputs: relax.Expr, rows: slice, hidden: relax.Expr, weights: relax.Expr
) -> relax.Expr:
    """One step's part of the data, and what the output before adds to it."""
    part = op.emit(relax.op.strided_slice(inputs, [0], [rows.start], [rows.stop]))
    return op.emit(relax.op.add(part, op.emit(relax.op.matmul(hidden, weights))))


def _clipped(op: Emitter, value: relax.Expr, option: str) -> relax.Expr:
    limit = float(op.option(option, 0.0))
    return op.emit(relax.op.clip(value, -limit, limit)) if limit > 0 else value


def _give_steps(op: Emitter, answers: list[relax.Expr]) -> None:
    axis = 0 if op.option("timeMajor", False) else 1
    parts = [op.emit(relax.op.expand_dims(answer, axis)) for answer in answers]
    op.give(relax.op.concat(parts, axis=axis) if len(parts) > 1 else parts[0])


CONVERTERS: Mapping[str, Converter] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn,
}
"""By TFLite operator name."""
