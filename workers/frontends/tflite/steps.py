"""What recurrent layers have in common: the data's steps, and pieces of arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Emitter

STATE_NOTE = (
    "Its state begins with zeros in every run, as after reset_all_variables: a package keeps "
    "nothing from one run to the next."
)


@dataclass(frozen=True)
class Sequence:
    """Data of a recurrent layer.

    Attributes:
        rows: all steps of all sequences, those of one step together: [steps * batch, width].
        count: number of steps.
        batch: number of sequences.
        is_backward: whether the last step comes first.
    """

    rows: relax.Expr
    count: int
    batch: int
    is_backward: bool = False

    def backward(self) -> Sequence:
        """The same data from its end."""
        return replace(self, is_backward=True)

    def steps(self) -> Iterator[slice]:
        """Rows of each step, in the order they are taken."""
        order = range(self.count)
        for step in reversed(order) if self.is_backward else order:
            yield slice(step * self.batch, (step + 1) * self.batch)

    def in_order(self, answers: list[relax.Expr]) -> list[relax.Expr]:
        """Answers that were computed in the order of `steps`, in the order of the data."""
        return answers[::-1] if self.is_backward else answers


def sequence_of(op: Emitter) -> Sequence:
    """The first input of a layer over sequences."""
    value, (first, second, width) = op.real(0), op.shape(0)
    if not op.option("timeMajor", False):
        value = op.emit(relax.op.permute_dims(value, (1, 0, 2)))
        first, second = second, first
    return Sequence(op.emit(relax.op.reshape(value, (first * second, width))), first, second)


def single_step(op: Emitter) -> Sequence:
    """The first input of a layer that is called once a step: [batch, width]."""
    return Sequence(op.real(0), 1, op.shape(0)[0])


def joined(op: Emitter, answers: list[relax.Expr]) -> relax.Expr:
    """Steps as one tensor, in the layer's order of axes."""
    axis = 0 if op.option("timeMajor", False) else 1
    parts = [op.emit(relax.op.expand_dims(answer, axis)) for answer in answers]
    return op.emit(relax.op.concat(parts, axis=axis)) if len(parts) > 1 else parts[0]


def weights_of(op: Emitter, position: int, axes: tuple[int, ...] | None = None) -> relax.Expr:
    """An input as real numbers; constant integers become them now.

    A layer on 8 bits is computed in real numbers between its first and its last step: no unit needs
    the integers of its weights, of which some have 16 bits.
    """
    tensor = op.tensor(position)
    if tensor.value is None or tensor.quantization is None:
        return op.real(position, axes)
    numbers = tensor.quantization.dequantize(tensor.value)
    return relax.const(numbers if axes is None else np.ascontiguousarray(numbers.transpose(axes)))


def product(op: Emitter, data: relax.Expr, weights: int, bias: int | None) -> relax.Expr:
    """Data times an input [width, data's width], and a bias that may be missing."""
    result = op.emit(relax.op.matmul(data, weights_of(op, weights, (1, 0))))
    return result if bias is None or not op.has(bias) else add(op, result, weights_of(op, bias))


def with_before(
    op: Emitter, inputs: relax.Expr, rows: slice, hidden: relax.Expr, weights: relax.Expr
) -> relax.Expr:
    """One step's part of the data, and what the output before adds to it."""
    part = op.emit(relax.op.strided_slice(inputs, [0], [rows.start], [rows.stop]))
    return add(op, part, op.emit(relax.op.matmul(hidden, weights)))


def add(op: Emitter, one: relax.Expr, other: relax.Expr) -> relax.Expr:
    """The sum, bound."""
    return op.emit(relax.op.add(one, other))


def clipped(op: Emitter, value: relax.Expr, option: str) -> relax.Expr:
    """Cut to plus and minus an option, which is 0 where nothing is cut."""
    limit = float(op.option(option, 0.0))
    return op.emit(relax.op.clip(value, -limit, limit)) if limit > 0 else value


def zeros(batch: int, width: int) -> relax.Expr:
    """A state to begin with."""
    return relax.const(np.zeros((batch, width), np.float32))


def require_states(op: Emitter, *states: int) -> None:
    """Make sure that the layer's state is its own, and note what becomes of it.

    Raises:
        NnfarmError: `compile.unsupported_operation`, the layer is given a state, or has data of
            another type than float32 and int8.
    """
    kinds = {op.output().dtype, op.tensor(0).dtype}
    if len(kinds) != 1 or not kinds <= {"float32", "int8"}:
        raise op.unsupported(f"has data of {' and '.join(sorted(kinds))}, not float32 or int8")
    if op.option("diagonalRecurrentTensors", False):
        raise op.unsupported("has diagonal recurrent weights")
    if any(not op.has(p) or not op.tensor(p).is_variable for p in states):
        raise op.unsupported("is given a state to begin with")
    op.note(STATE_NOTE)
