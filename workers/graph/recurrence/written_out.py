"""A recurrent layer step by step, for what has neither loops nor the layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm import relax

from workers.graph.graph import static_shape
from workers.graph.recurrence.cell import Cell, Emit
from workers.graph.recurrence.cells import cell_of
from workers.graph.recurrence.layer import BACKWARD, Recurrence


def written_out(recurrence: Recurrence, emit: Emit) -> list[relax.Expr]:
    """Emit a layer's steps; gives the items of its call's tuple."""
    sequences, finals = [], []
    for way in recurrence.layer.ways:
        cell = cell_of(recurrence, way, emit)
        outputs = [cell.advance(step) for step in _steps(recurrence, way, cell, emit)]
        ordered = outputs[::-1] if way == BACKWARD else outputs
        sequences.append(_stack(recurrence, ordered, emit))
        finals += cell.states
    whole = sequences[0] if len(sequences) == 1 else emit(relax.op.concat(sequences, -1))
    return [whole, *finals]


def _steps(recurrence: Recurrence, way: str, cell: Cell, emit: Emit) -> Iterator[relax.Expr]:
    """What each step's input adds to the cell's sums, in the order the steps are taken."""
    sums = cell.of_input(recurrence.data)
    if recurrence.is_step:
        yield sums
        return
    axis, places = recurrence.steps_axis, range(recurrence.steps)
    shape = (recurrence.batch, (static_shape(sums) or ())[-1])
    for place in reversed(places) if way == BACKWARD else places:
        row = emit(relax.op.strided_slice(sums, [axis], [place], [place + 1]))
        yield emit(relax.op.reshape(row, shape))


def _stack(recurrence: Recurrence, outputs: Sequence[relax.Expr], emit: Emit) -> relax.Expr:
    if recurrence.is_step:
        return outputs[0]
    batch, width = static_shape(outputs[0]) or (0, 0)
    axis = recurrence.steps_axis
    shape = (1, batch, width) if axis == 0 else (batch, 1, width)
    rows = [emit(relax.op.reshape(output, shape)) for output in outputs]
    return rows[0] if len(rows) == 1 else emit(relax.op.concat(rows, axis))
