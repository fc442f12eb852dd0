"""All steps of an LSTM in one kernel: the state stays in the cache, and no step is a call.

Written as it is to run; there is no schedule for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T  # noqa: N812 - its name everywhere

from workers.backends.cpu.operators.packed import IS_OPAQUE, pack, round_up
from workers.backends.cpu.operators.polynomials import sigmoid, tanh
from workers.backends.cpu.vectors import Vectors
from workers.graph.writing import Value, memory, parameter

GATES = 4

MAX_VECTORS = 12
"""Sums in registers at a time; each step of a sum reads one number of the state for all of them."""


@dataclass(frozen=True)
class LstmSequence:
    """Where the steps are, and their sizes.

    Attributes:
        shape: of what is added to the gates: three axes, the last one all gates side by side.
        axis: of the steps, 0 or 1; the other one is the batch.
        first: position of the first step on that axis.
        step: distance of two steps, 1 or -1.
        length: number of steps.
        hidden: size of the state.
        order: place of the gates input, forget, cell and output among the four.
    """

    shape: tuple[int, int, int]
    axis: int
    first: int
    step: int
    length: int
    hidden: int
    order: tuple[int, ...]

    @property
    def batch(self) -> int:
        """Sequences side by side."""
        return self.shape[1 - self.axis]


def packed_weight(
    weight: NDArray[np.float32], hidden: int, vectors: Vectors, gate_count: int = GATES
) -> NDArray[np.float32]:
    """Weights of the state, [hidden, gates * hidden], as a kernel reads them.

    Returns:
        [tiles, hidden, columns of a tile]; every gate is filled with zeros to whole registers.
    """
    lanes = vectors.lanes
    gates = weight.reshape(hidden, gate_count, hidden)
    padded = np.pad(gates, ((0, 0), (0, 0), (0, -hidden % lanes))).reshape(hidden, -1)
    packed: NDArray[np.float32] = pack(padded, tile_vectors(hidden, vectors, gate_count) * lanes)
    return packed


def lstm_kernel(sequence: LstmSequence, vectors: Vectors) -> tirx.PrimFunc:
    """The function of: inputs, packed weights, state and cell before, states, last cell.

    float32: `sequence.shape`; `packed_weight`; [batch, hidden] twice; results
    [steps, batch, hidden], in the order of the inputs, and [batch, hidden].
    """
    hidden, batch = sequence.hidden, sequence.batch
    lanes, count = vectors.lanes, tile_vectors(hidden, vectors)
    width = round_up(hidden, lanes)
    tiles = GATES * width // (count * lanes)
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True, **IS_OPAQUE})
            inputs = parameter("inputs", sequence.shape)
            weight = parameter("weight", (tiles, hidden, count * lanes))
            first_state = parameter("first_state", (batch, hidden))
            first_cell = parameter("first_cell", (batch, hidden))
            states = parameter("states", (sequence.length, batch, hidden))
            last_cell = parameter("last_cell", (batch, hidden))
            step = _Step(
                sequence, lanes, count, tiles, width, weight,
                gates=memory((GATES * width,), "float32"),
                state=memory((width,), "float32"),
                cell=memory((width,), "float32"),
                sums=memory((count * lanes,), "float32", "local"),
                registers=[memory((lanes,), "float32", "local") for _ in range(GATES)],
            )  # fmt: skip
            with T.serial(0, batch) as row:
                step.begin(lambda j: first_state[row, j], lambda j: first_cell[row, j])
                with T.serial(0, sequence.length) as at:
                    place = sequence.first + at * sequence.step
                    index = (place, row) if sequence.axis == 0 else (row, place)
                    step.add(lambda column: inputs[(*index, column)])
                    step.advance()
                    in_order = at if sequence.step > 0 else sequence.length - 1 - at
                    with along(hidden, lanes) as j:
                        states[in_order, row, j] = step.state[j]
                with along(hidden, lanes) as j:
                    last_cell[row, j] = step.cell[j]
        return builder.get()


def tile_vectors(hidden: int, vectors: Vectors, gate_count: int = GATES) -> int:
    """Registers of a tile: a divisor of all, so that no tile is filled up."""
    total = gate_count * round_up(hidden, vectors.lanes) // vectors.lanes
    most = min(MAX_VECTORS, vectors.registers - 4)
    return next(n for n in range(most, 0, -1) if total % n == 0)


@dataclass(frozen=True)
class _Step:
    """What a step reads and writes; `width` is the state's size in whole registers."""

    sequence: LstmSequence
    lanes: int
    count: int
    tiles: int
    width: int
    weight: Value
    gates: Value
    state: Value
    cell: Value
    sums: Value
    registers: list[Value]

    def begin(self, state: Callable[[Value], Value], cell: Callable[[Value], Value]) -> None:
        """State and cell before the first step; what fills registers up is 0 and stays so."""
        with T.serial(0, GATES * self.width) as j:
            self.gates[j] = T.float32(0.0)
        with T.serial(0, self.width) as j:
            self.state[j] = T.float32(0.0)
            self.cell[j] = T.float32(0.0)
        with along(self.sequence.hidden, self.lanes) as j:
            self.state[j] = state(j)
            self.cell[j] = cell(j)

    def add(self, inputs: Callable[[Value], Value]) -> None:
        """What the step's input adds to the gates."""
        hidden = self.sequence.hidden
        for gate in range(GATES):
            with along(hidden, self.lanes) as j:
                self.gates[gate * self.width + j] = inputs(gate * hidden + j)

    def advance(self) -> None:
        """The next state and cell."""
        columns = self.count * self.lanes
        with T.serial(0, self.tiles) as tile:
            with in_tile(self.count, self.lanes) as j:
                self.sums[j] = self.gates[tile * columns + j]
            with T.serial(0, self.sequence.hidden) as k, in_tile(self.count, self.lanes) as j:
                self.sums[j] = self.sums[j] + self.state[k] * self.weight[tile, k, j]
            with in_tile(self.count, self.lanes) as j:
                self.gates[tile * columns + j] = self.sums[j]
        with T.serial(0, self.width // self.lanes) as part, T.vectorized(0, self.lanes) as lane:
            self._activate(part * self.lanes + lane, lane)

    def _activate(self, j: Value, lane: Value) -> None:
        entered, kept, cell, shown = (
            self.gates[place * self.width + j] for place in self.sequence.order
        )
        made, left, other, out = self.registers
        made[lane] = tanh(cell)
        left[lane] = sigmoid(kept) * self.cell[j]
        other[lane] = left[lane] + sigmoid(entered) * made[lane]
        self.cell[j] = other[lane]
        out[lane] = tanh(other[lane])
        self.state[j] = sigmoid(shown) * out[lane]


@contextmanager
def in_tile(count: int, lanes: int) -> Iterator[Value]:
    """Every element of a tile, in registers."""
    with T.unroll(0, count) as part, T.vectorized(0, lanes) as lane:
        yield part * lanes + lane


@contextmanager
def along(size: int, lanes: int) -> Iterator[Value]:
    """Every element, in registers where they are whole."""
    if size % lanes:
        with T.serial(0, size) as j:
            yield j
    else:
        with T.serial(0, size // lanes) as part, T.vectorized(0, lanes) as lane:
            yield part * lanes + lane
