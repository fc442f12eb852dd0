"""What one step of a recurrent layer computes, in Relax operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.recurrence.layer import GATES, LSTM, Layer, Recurrence

Emit = Callable[[relax.Expr], relax.Expr]

_ACTIVATIONS: Mapping[str, Callable[[relax.Expr], relax.Expr]] = {
    "relu": relax.op.nn.relu,
    "relu1": lambda value: relax.op.clip(value, -1.0, 1.0),
    "relu6": lambda value: relax.op.clip(value, 0.0, 6.0),
    "tanh": relax.op.tanh,
    "sigmoid": relax.op.sigmoid,
}
_VARIANCE = 1e-8
"""What a variance of 0 is taken for where gates are normalized."""


class Cell(ABC):
    """One direction of a layer, and its state as the steps go on.

    Args:
        layer: the layer.
        operands: of the direction.
        emit: binds an expression.

    Attributes:
        states: the output and, of an LSTM, the cell before the next step.
    """

    def __init__(self, layer: Layer, operands: Mapping[str, relax.Expr], emit: Emit) -> None:
        self._layer, self._operands, self._emit = layer, operands, emit
        self.states = [operands[state] for state in layer.states]
        self._recurrent = self._turned(self._recurrent_weights())

    @abstractmethod
    def of_input(self, data: relax.Expr) -> relax.Expr:
        """What the inputs of all steps add to the sums of the gates, which stand side by side."""

    @abstractmethod
    def advance(self, step: relax.Expr) -> relax.Expr:
        """Take a step, which gives its output [batch, width].

        Args:
            step: what its input adds to the sums, [batch, sums].
        """

    @abstractmethod
    def _recurrent_weights(self) -> relax.Expr:
        """[sums, width of the output]."""

    def _with_output_before(self, step: relax.Expr) -> relax.Expr:
        if _is_zero(self.states[0]):
            return step
        return self._add(step, self._emit(relax.op.matmul(self.states[0], self._recurrent)))

    def _add(self, one: relax.Expr, other: relax.Expr) -> relax.Expr:
        return self._emit(relax.op.add(one, other))

    def _product(self, one: relax.Expr, other: relax.Expr) -> relax.Expr:
        return self._emit(relax.op.multiply(one, other))

    def _activated(self, value: relax.Expr) -> relax.Expr:
        name = self._layer.activation
        return value if name == "none" else self._emit(_ACTIVATIONS[name](value))

    def _side_by_side(self, parts: Sequence[relax.Expr]) -> relax.Expr:
        arrays = [array for part in parts if (array := constant_value(part)) is not None]
        if len(arrays) == len(parts):
            return relax.const(np.concatenate(arrays))
        return self._emit(relax.op.concat(list(parts), 0))

    def _turned(self, weights: relax.Expr) -> relax.Expr:
        array = constant_value(weights)
        if array is None:
            return self._emit(relax.op.permute_dims(weights, [1, 0]))
        return relax.const(np.ascontiguousarray(array.T))


def cell_of(recurrence: Recurrence, way: str, emit: Emit) -> Cell:
    """The cell of one direction."""
    kind = _LstmCell if recurrence.layer.cell == LSTM else _RnnCell
    return kind(recurrence.layer, recurrence.of_way(way), emit)


class _RnnCell(Cell):
    def of_input(self, data: relax.Expr) -> relax.Expr:
        product = self._emit(relax.op.matmul(data, self._turned(self._operands["weights"])))
        return self._add(product, self._operands["bias"])

    def _recurrent_weights(self) -> relax.Expr:
        return self._operands["recurrent_weights"]

    def advance(self, step: relax.Expr) -> relax.Expr:
        self.states = [self._activated(self._with_output_before(step))]
        return self.states[0]


class _LstmCell(Cell):
    def __init__(self, layer: Layer, operands: Mapping[str, relax.Expr], emit: Emit) -> None:
        super().__init__(layer, operands, emit)
        projection = operands.get("projection_weights")
        self._projection = None if projection is None else self._turned(projection)

    @property
    def _gates(self) -> tuple[str, ...]:
        """All, or without the input gate where it is what is not forgotten."""
        return GATES if "input_to_input_weights" in self._operands else GATES[1:]

    @property
    def _is_normalized(self) -> bool:
        return "cell_norm" in self._operands

    def _bias(self, gate: str) -> relax.Expr:
        return self._operands["cell_bias" if gate == "cell" else f"{gate}_gate_bias"]

    def _recurrent_weights(self) -> relax.Expr:
        return self._side_by_side(
            [self._operands[f"recurrent_to_{g}_weights"] for g in self._gates]
        )

    def of_input(self, data: relax.Expr) -> relax.Expr:
        weights = self._side_by_side([self._operands[f"input_to_{g}_weights"] for g in self._gates])
        product = self._emit(relax.op.matmul(data, self._turned(weights)))
        if self._is_normalized:  # the biases come behind it
            return product
        return self._add(product, self._side_by_side([self._bias(gate) for gate in self._gates]))

    def advance(self, step: relax.Expr) -> relax.Expr:
        cell, sums = self.states[1], self._with_output_before(step)
        units = (static_shape(cell) or (0, 0))[1]
        parts = {
            gate: self._emit(relax.op.strided_slice(sums, [1], [i * units], [(i + 1) * units]))
            for i, gate in enumerate(self._gates)
        }
        forget = self._gate("forget", parts, cell)
        if "input" in parts:
            entry = self._gate("input", parts, cell)
        else:
            one = relax.const(1.0, dtype_of(step))
            entry = self._emit(relax.op.subtract(one, forget))
        made = self._activated(self._normalized("cell", parts["cell"]))
        new = self._product(entry, made)
        if not _is_zero(cell):
            new = self._add(self._product(forget, cell), new)
        new = self._clipped(new, self._layer.cell_clip)
        shown = self._gate("output", parts, new)
        output = self._projected(self._product(shown, self._activated(new)))
        self.states = [output, new]
        return output

    def _gate(self, gate: str, parts: Mapping[str, relax.Expr], cell: relax.Expr) -> relax.Expr:
        value = parts[gate]
        peephole = self._operands.get(f"cell_to_{gate}_weights")
        if peephole is not None and not _is_zero(cell):
            value = self._add(value, self._product(cell, peephole))
        return self._emit(relax.op.sigmoid(self._normalized(gate, value)))

    def _normalized(self, gate: str, value: relax.Expr) -> relax.Expr:
        if not self._is_normalized:
            return value
        emit = self._emit
        mean = emit(relax.op.mean(value, [-1], True))
        centred = emit(relax.op.subtract(value, mean))
        variance = emit(relax.op.mean(self._product(centred, centred), [-1], True))
        least = relax.const(_VARIANCE, dtype_of(value))
        spread = emit(relax.op.sqrt(self._add(variance, least)))
        unit = emit(relax.op.divide(centred, spread))
        return self._add(self._product(unit, self._operands[f"{gate}_norm"]), self._bias(gate))

    def _projected(self, value: relax.Expr) -> relax.Expr:
        if self._projection is None:
            return value
        value = self._emit(relax.op.matmul(value, self._projection))
        if "projection_bias" in self._operands:
            value = self._add(value, self._operands["projection_bias"])
        return self._clipped(value, self._layer.projection_clip)

    def _clipped(self, value: relax.Expr, limit: float) -> relax.Expr:
        return self._emit(relax.op.clip(value, -limit, limit)) if limit > 0 else value


def _is_zero(state: relax.Expr) -> bool:
    array = constant_value(state)
    return array is not None and not array.any()
