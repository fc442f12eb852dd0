"""All steps of a GRU in one kernel, like those of an LSTM; written as it is to run.

Of the kind that resets the state behind its product (PyTorch's, Keras's, ONNX's with
linear_before_reset), so that one product gives the sums of all gates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812 - its name everywhere

from workers.backends.cpu.operators.lstm import LstmSequence, along, in_tile, tile_vectors
from workers.backends.cpu.operators.packed import IS_OPAQUE, round_up
from workers.backends.cpu.operators.polynomials import sigmoid, tanh
from workers.backends.cpu.vectors import Vectors
from workers.graph.writing import Value, memory, parameter

GATES = 3
"""Update, reset, new."""


def packed_bias(bias: NDArray[np.float32], hidden: int, vectors: Vectors) -> NDArray[np.float32]:
    """A bias of the state's sums, [gates * hidden], every gate filled to whole registers."""
    gates = bias.reshape(GATES, hidden)
    return np.pad(gates, ((0, 0), (0, -hidden % vectors.lanes))).reshape(-1)


def gru_kernel(sequence: LstmSequence, vectors: Vectors) -> tirx.PrimFunc:
    """The function of: inputs, packed weights, packed bias, state before, states.

    float32: `sequence.shape`; `packed_weight` of three gates; `packed_bias`; [batch, hidden];
    result [steps, batch, hidden], in the order of the inputs.
    """
    hidden, batch = sequence.hidden, sequence.batch
    lanes, count = vectors.lanes, tile_vectors(hidden, vectors, GATES)
    width = round_up(hidden, lanes)
    tiles = GATES * width // (count * lanes)
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True, **IS_OPAQUE})
            inputs = parameter("inputs", sequence.shape)
            weight = parameter("weight", (tiles, hidden, count * lanes))
            bias = parameter("bias", (GATES * width,))
            first_state = parameter("first_state", (batch, hidden))
            states = parameter("states", (sequence.length, batch, hidden))
            step = _Step(
                hidden, lanes, count, tiles, width, weight, bias,
                fresh=memory((GATES * width,), "float32"),
                gates=memory((GATES * width,), "float32"),
                state=memory((width,), "float32"),
                sums=memory((count * lanes,), "float32", "local"),
                registers=[memory((lanes,), "float32", "local") for _ in range(GATES)],
            )  # fmt: skip
            step.clear()
            with T.serial(0, batch) as row:
                with along(hidden, lanes) as j:
                    step.state[j] = first_state[row, j]
                with T.serial(0, sequence.length) as at:
                    place = sequence.first + at * sequence.step
                    index = (place, row) if sequence.axis == 0 else (row, place)
                    for gate in range(GATES):
                        with along(hidden, lanes) as j:
                            step.fresh[gate * width + j] = inputs[(*index, gate * hidden + j)]
                    step.advance()
                    in_order = at if sequence.step > 0 else sequence.length - 1 - at
                    with along(hidden, lanes) as j:
                        states[in_order, row, j] = step.state[j]
        return builder.get()


@dataclass(frozen=True)
class _Step:
    """What a step reads and writes; `width` is the state's size in whole registers."""

    hidden: int
    lanes: int
    count: int
    tiles: int
    width: int
    weight: Value
    bias: Value
    fresh: Value
    gates: Value
    state: Value
    sums: Value
    registers: list[Value]

    def clear(self) -> None:
        """What fills registers up is 0, and stays so."""
        with T.serial(0, GATES * self.width) as j:
            self.fresh[j] = T.float32(0.0)
        with T.serial(0, self.width) as j:
            self.state[j] = T.float32(0.0)

    def advance(self) -> None:
        """The next state."""
        columns = self.count * self.lanes
        with T.serial(0, self.tiles) as tile:
            with in_tile(self.count, self.lanes) as j:
                self.sums[j] = self.bias[tile * columns + j]
            with T.serial(0, self.hidden) as k, in_tile(self.count, self.lanes) as j:
                self.sums[j] = self.sums[j] + self.state[k] * self.weight[tile, k, j]
            with in_tile(self.count, self.lanes) as j:
                self.gates[tile * columns + j] = self.sums[j]
        with T.serial(0, self.width // self.lanes) as part, T.vectorized(0, self.lanes) as lane:
            self._activate(part * self.lanes + lane, lane)

    def _activate(self, j: Value, lane: Value) -> None:
        (update_in, reset_in, new_in), (update, reset, new) = (
            [buffer[gate * self.width + j] for gate in range(GATES)]
            for buffer in (self.fresh, self.gates)
        )
        kept, masked, made = self.registers
        kept[lane] = sigmoid(update_in + update)
        masked[lane] = sigmoid(reset_in + reset) * new
        made[lane] = tanh(new_in + masked[lane])
        self.state[j] = made[lane] + kept[lane] * (self.state[j] - made[lane])
