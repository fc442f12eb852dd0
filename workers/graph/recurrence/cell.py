"""What the cells of recurrent layers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tvm import relax

from workers.graph.graph import constant_value
from workers.graph.recurrence.layer import Layer

Emit = Callable[[relax.Expr], relax.Expr]

_ACTIVATIONS: Mapping[str, Callable[[relax.Expr], relax.Expr]] = {
    "relu": relax.op.nn.relu,
    "relu1": lambda value: relax.op.clip(value, -1.0, 1.0),
    "relu6": lambda value: relax.op.clip(value, 0.0, 6.0),
    "tanh": relax.op.tanh,
    "sigmoid": relax.op.sigmoid,
}


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
        if is_zero(self.states[0]):
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


def is_zero(state: relax.Expr) -> bool:
    """Whether a state is known to be 0."""
    array = constant_value(state)
    return array is not None and not array.any()
