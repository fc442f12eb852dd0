"""LSTM cells, step by step; every run begins with a state of zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import relax

from workers.frontends.tflite.emitter import Emitter
from workers.frontends.tflite.steps import (
    Sequence,
    add,
    clipped,
    product,
    weights_of,
    with_before,
    zeros,
)

GATES = ("input", "forget", "cell", "output")
"""Order of an LSTM's weights, recurrent weights, biases and norms among its inputs."""
_PEEPHOLES = ("input", "forget", "output")
_VARIANCE = 1e-8
"""What a variance of 0 is taken for."""


@dataclass(frozen=True)
class Places:
    """Where among an operator's inputs a cell's operands begin."""

    weights: int
    recurrent: int
    peepholes: int
    biases: int
    projection: int
    state: int
    norms: int | None

    @property
    def states(self) -> tuple[int, int]:
        """What the cell gave and what it keeps."""
        return self.state, self.state + 1


ONE_WAY = Places(1, 5, 9, 12, 16, 18, 20)
FORWARD = Places(1, 5, 9, 12, 16, 35, None)
BACKWARD = Places(18, 22, 26, 29, 33, 37, None)


@dataclass(frozen=True)
class _Cell:
    """An LSTM's operands, read once for all steps.

    Attributes:
        inputs: the gates of all steps from the data alone: [steps * batch, cells].
        recurrent: weights of the output before, by gate.
        peepholes: weights of the cell's state, by gate; where the cell has them.
        norms: factors and biases behind a gate's normalization; where the cell has it. Elsewhere
            the inputs have the biases already.
        projection: weights; None where there is none.
        projection_bias: None where there is none.
    """

    inputs: Mapping[str, relax.Expr]
    recurrent: Mapping[str, relax.Expr]
    peepholes: Mapping[str, relax.Expr]
    norms: Mapping[str, tuple[relax.Expr, relax.Expr]]
    projection: relax.Expr | None
    projection_bias: relax.Expr | None


def lstm_answers(op: Emitter, places: Places, sequence: Sequence) -> list[relax.Expr]:
    """What the cell gives at each step, in the order of the sequence: [batch, width]."""
    cell = _read(op, places, sequence.rows)
    cells, width = op.shape(places.recurrent + 1)
    hidden, state = zeros(sequence.batch, width), zeros(sequence.batch, cells)
    answers = []
    for rows in sequence.steps():
        hidden, state = _step(op, cell, rows, hidden, state)
        answers.append(hidden)
    return sequence.in_order(answers)


def _read(op: Emitter, places: Places, rows: relax.Expr) -> _Cell:
    taken = [i for i, gate in enumerate(GATES) if gate != "input" or op.has(places.weights)]
    norms = {}
    if places.norms is not None and op.has(places.norms + 1):
        norms = {
            GATES[i]: (weights_of(op, places.norms + i), weights_of(op, places.biases + i))
            for i in taken
        }
    return _Cell(
        {
            GATES[i]: product(op, rows, places.weights + i, None if norms else places.biases + i)
            for i in taken
        },
        {GATES[i]: weights_of(op, places.recurrent + i, (1, 0)) for i in taken},
        {
            gate: weights_of(op, places.peepholes + i)
            for i, gate in enumerate(_PEEPHOLES)
            if op.has(places.peepholes + i)
        },
        norms,
        weights_of(op, places.projection, (1, 0)) if op.has(places.projection) else None,
        weights_of(op, places.projection + 1) if op.has(places.projection + 1) else None,
    )


def _step(
    op: Emitter, cell: _Cell, rows: slice, hidden: relax.Expr, state: relax.Expr
) -> tuple[relax.Expr, relax.Expr]:
    """Output and state after one more step."""

    def gate(name: str, memory: relax.Expr) -> relax.Expr:
        total = with_before(op, cell.inputs[name], rows, hidden, cell.recurrent[name])
        if name in cell.peepholes:
            total = add(op, total, op.emit(relax.op.multiply(memory, cell.peepholes[name])))
        return _normalized(op, total, *cell.norms[name]) if name in cell.norms else total

    forget = op.emit(relax.op.sigmoid(gate("forget", state)))
    if "input" in cell.inputs:
        entry = op.emit(relax.op.sigmoid(gate("input", state)))
    else:  # coupled: what is not forgotten does not enter
        entry = op.emit(relax.op.subtract(relax.const(1.0, "float32"), forget))
    candidate = op.activated(gate("cell", state))
    kept = op.emit(relax.op.multiply(forget, state))
    state = add(op, kept, op.emit(relax.op.multiply(entry, candidate)))
    state = clipped(op, state, "cellClip")
    output = op.emit(relax.op.sigmoid(gate("output", state)))
    result = op.emit(relax.op.multiply(output, op.activated(state)))
    if cell.projection is not None:
        result = op.emit(relax.op.matmul(result, cell.projection))
        if cell.projection_bias is not None:
            result = add(op, result, cell.projection_bias)
        result = clipped(op, result, "projClip")
    return result, state


def _normalized(
    op: Emitter, value: relax.Expr, factors: relax.Expr, biases: relax.Expr
) -> relax.Expr:
    mean = op.emit(relax.op.mean(value, [-1], True))
    centred = op.emit(relax.op.subtract(value, mean))
    squares = op.emit(relax.op.multiply(centred, centred))
    variance = op.emit(relax.op.mean(squares, [-1], True))
    spread = op.emit(relax.op.sqrt(add(op, variance, relax.const(_VARIANCE, "float32"))))
    unit = op.emit(relax.op.divide(centred, spread))
    return add(op, op.emit(relax.op.multiply(unit, factors)), biases)


def basic_lstm(op: Emitter) -> None:
    """LSTM of the kernel "basic": one product for all gates; the state comes and goes as tensors.

    Inputs: data, output before, weights, bias, state before. Outputs: output, state, and two that
    are LiteRT's scratch, the joined data and the gates.
    """
    if op.output().dtype != "float32":
        raise op.unsupported("computes on integers of 16 bits")
    joined = op.emit(relax.op.concat([op.real(0), op.real(1)], axis=-1))
    gates = product(op, joined, 2, 3)
    parts = op.emit(relax.op.split(gates, 4, axis=-1))
    entry, candidate, forget, output = (op.emit(relax.TupleGetItem(parts, i)) for i in range(4))
    kept = op.emit(relax.op.multiply(op.emit(relax.op.sigmoid(forget)), op.real(4)))
    new = op.emit(relax.op.multiply(op.emit(relax.op.sigmoid(entry)), _tanh(op, candidate)))
    state = add(op, kept, new)
    op.give(
        relax.op.multiply(op.emit(relax.op.sigmoid(output)), _tanh(op, state)),
    )
    for position, value in enumerate((state, joined, gates), 1):
        if position < len(op.operator.outputs):
            op.give(value, position)


def _tanh(op: Emitter, value: relax.Expr) -> relax.Expr:
    return op.emit(relax.op.tanh(value))
