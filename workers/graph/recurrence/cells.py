"""What one step of a recurrent layer computes, in Relax operations."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from workers.graph.graph import dtype_of, static_shape
from workers.graph.recurrence.cell import Cell, Emit, is_zero
from workers.graph.recurrence.gru import GruCell
from workers.graph.recurrence.layer import GATES, GRU, LSTM, Layer, Recurrence

_VARIANCE = 1e-8
"""What a variance of 0 is taken for where gates are normalized."""


def cell_of(recurrence: Recurrence, way: str, emit: Emit) -> Cell:
    """The cell of one direction."""
    kind = {LSTM: _LstmCell, GRU: GruCell}.get(recurrence.layer.cell, _RnnCell)
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
        if not is_zero(cell):
            new = self._add(self._product(forget, cell), new)
        new = self._clipped(new, self._layer.cell_clip)
        shown = self._gate("output", parts, new)
        output = self._projected(self._product(shown, self._activated(new)))
        self.states = [output, new]
        return output

    def _gate(self, gate: str, parts: Mapping[str, relax.Expr], cell: relax.Expr) -> relax.Expr:
        value = parts[gate]
        peephole = self._operands.get(f"cell_to_{gate}_weights")
        if peephole is not None and not is_zero(cell):
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
