"""One step of a GRU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.graph.graph import constant_value, static_shape
from workers.graph.recurrence.cell import Cell, Emit, is_zero
from workers.graph.recurrence.layer import Layer


class GruCell(Cell):
    """Gates update, reset and new, side by side; weights are constants."""

    def __init__(self, layer: Layer, operands: Mapping[str, relax.Expr], emit: Emit) -> None:
        super().__init__(layer, operands, emit)
        self._units = (static_shape(operands["state_in"]) or (0, 0))[1]
        first = 2 * self._units
        arrays = (constant_value(operands[f"recurrent_{name}"]) for name in ("weights", "bias"))
        weights, bias = (np.asarray(array) for array in arrays)
        # The first two gates' bias is added to the inputs at once, and so is the third one's
        # where its product is by itself.
        self._added = np.concatenate([bias[:first], bias[first:] * (not layer.is_reset_late)])
        self._new_bias = relax.const(bias[first:])
        self._gate_weights, self._new_weights = (
            relax.const(np.ascontiguousarray(part.T)) for part in (weights[:first], weights[first:])
        )

    def of_input(self, data: relax.Expr) -> relax.Expr:
        """The sums without the state."""
        product = self._emit(relax.op.matmul(data, self._turned(self._operands["weights"])))
        bias = np.asarray(constant_value(self._operands["bias"]))
        return self._add(product, relax.const(bias + self._added))

    def _recurrent_weights(self) -> relax.Expr:
        return self._operands["recurrent_weights"]

    def advance(self, step: relax.Expr) -> relax.Expr:
        """The next state: new + update * (state - new)."""
        hidden = self.states[0]
        update, reset, new = self._parts(step, 3)
        product = None
        if not is_zero(hidden) and self._layer.is_reset_late:
            whole = self._emit(relax.op.matmul(hidden, self._recurrent))
            *gates, product = self._parts(whole, 3)
        elif not is_zero(hidden):
            gates = self._parts(self._emit(relax.op.matmul(hidden, self._gate_weights)), 2)
        if not is_zero(hidden):
            update, reset = self._add(update, gates[0]), self._add(reset, gates[1])
        update, reset = (self._emit(relax.op.sigmoid(gate)) for gate in (update, reset))
        if self._layer.is_reset_late:
            inner = self._new_bias if product is None else self._add(product, self._new_bias)
            new = self._add(new, self._product(reset, inner))
        elif not is_zero(hidden):
            masked = self._product(reset, hidden)
            new = self._add(new, self._emit(relax.op.matmul(masked, self._new_weights)))
        new = self._activated(new)
        moved = self._product(update, self._emit(relax.op.subtract(hidden, new)))
        self.states = [self._add(new, moved)]
        return self.states[0]

    def _parts(self, value: relax.Expr, count: int) -> list[relax.Expr]:
        units = self._units
        return [
            self._emit(relax.op.strided_slice(value, [1], [i * units], [(i + 1) * units]))
            for i in range(count)
        ]
