"""LSTM cells: their operands, and the kernel whose state comes and goes as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import relax

from workers.frontends.tflite.emitter import Emitter
from workers.frontends.tflite.steps import part_of, weights_of, zeros
from workers.graph.recurrence.layer import GATES, LSTM, Layer, Recurrence

_PEEPHOLES = ("input", "forget", "output")


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


def lstm_operands(op: Emitter, places: Places, batch: int) -> Mapping[str, relax.Expr]:
    """A cell's operands by NNAPI's roles; those that the operator has."""
    at = {
        **{f"input_to_{gate}_weights": places.weights + i for i, gate in enumerate(GATES)},
        **{f"recurrent_to_{gate}_weights": places.recurrent + i for i, gate in enumerate(GATES)},
        **{f"cell_to_{gate}_weights": places.peepholes + i for i, gate in enumerate(_PEEPHOLES)},
        **{bias_of(gate): places.biases + i for i, gate in enumerate(GATES)},
        "projection_weights": places.projection,
        "projection_bias": places.projection + 1,
    }
    if places.norms is not None:
        at |= {f"{gate}_norm": places.norms + i for i, gate in enumerate(GATES)}
    if not op.has(places.weights):  # coupled: what is not forgotten enters
        at = {role: place for role, place in at.items() if not _is_of_input_gate(role)}
    cells, width = op.shape(places.recurrent + 1)
    return {
        **{role: weights_of(op, place) for role, place in at.items() if op.has(place)},
        "state_in": zeros(batch, width),
        "cell_state_in": zeros(batch, cells),
    }


def bias_of(gate: str) -> str:
    """Role of a gate's bias."""
    return "cell_bias" if gate == "cell" else f"{gate}_gate_bias"


def _is_of_input_gate(role: str) -> bool:
    return role.startswith("input_gate") or "_to_input_" in role or role == "input_norm"


def basic_lstm(op: Emitter) -> None:
    """LSTM of the kernel "basic": one product for all gates; the state comes and goes as tensors.

    Inputs: data, output before, weights, bias, state before. Outputs: output, state, and two that
    are LiteRT's scratch, the joined data and the gates.
    """
    if op.output().dtype != "float32":
        raise op.unsupported("computes on integers of 16 bits")
    weights, bias, data = weights_of(op, 2), weights_of(op, 3), op.real(0)
    cells, width = op.shape(4)[1], op.shape(0)[1]
    operands: dict[str, relax.Expr] = {"input": data}
    for i, gate in enumerate(_BASIC_ORDER):
        rows = part_of(op, weights, 0, i * cells, (i + 1) * cells)
        operands[f"fw_input_to_{gate}_weights"] = part_of(op, rows, 1, 0, width)
        operands[f"fw_recurrent_to_{gate}_weights"] = part_of(op, rows, 1, width, width + cells)
        operands[f"fw_{bias_of(gate)}"] = part_of(op, bias, 0, i * cells, (i + 1) * cells)
    operands |= {"fw_state_in": op.real(1), "fw_cell_state_in": op.real(4)}
    call = op.emit(Recurrence(Layer(LSTM, "tanh"), operands).call())
    op.give(op.emit(relax.TupleGetItem(call, 0)))
    joined = op.emit(relax.op.concat([data, op.real(1)], axis=-1))
    turned = op.emit(relax.op.permute_dims(weights, (1, 0)))
    gates = op.emit(relax.op.add(op.emit(relax.op.matmul(joined, turned)), bias))
    state = op.emit(relax.TupleGetItem(call, 2))
    for position, value in enumerate((state, joined, gates), 1):
        if position < len(op.operator.outputs):
            op.give(value, position)


_BASIC_ORDER = ("input", "cell", "forget", "output")
