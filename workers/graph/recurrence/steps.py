"""A step of an LSTM that came written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value

Order = tuple[int, ...]
"""Place of the gates input, forget, cell and output among the four."""


@dataclass(frozen=True)
class Place:
    """One position of a tensor of three axes: `source` at `index` of `axis`."""

    source: relax.Var
    axis: int
    index: int

    def is_beside(self, other: Place) -> bool:
        """Whether it is the neighbour in the same tensor."""
        return (
            self.source.same_as(other.source)
            and self.axis == other.axis
            and abs(self.index - other.index) == 1
        )


@dataclass(frozen=True)
class Step:
    """One step: variables of its results and of the step before, and what it computes with.

    Attributes:
        state: the output.
        cell: the cell behind the step.
        state_before: the output of the step before.
        cell_before: the cell behind it.
        inputs: where the step's input is; what it adds to the sums, where there is no weight.
        input_weight: what the input is multiplied by, [width, 4 * units]; None where it has been.
        weight: of the output before, [units, 4 * units].
        biases: of the sums, each of 4 * units numbers.
        order: of the gates among the sums.
    """

    state: relax.Var
    cell: relax.Var
    state_before: relax.Expr
    cell_before: relax.Expr
    inputs: Place
    input_weight: relax.Expr | None
    weight: relax.Expr
    biases: tuple[relax.Expr, ...]
    order: Order

    def follows(self, other: Step) -> bool:
        """Whether this is the next step of the same layer."""
        return (
            self.cell_before.same_as(other.cell)
            and self.inputs.is_beside(other.inputs)
            and self.order == other.order
            and are_equal(self._constants, other._constants)
        )

    @property
    def _constants(self) -> tuple[relax.Expr, ...]:
        own = () if self.input_weight is None else (self.input_weight,)
        return (*own, self.weight, *self.biases)


def direction_of(chain: Sequence[Step]) -> int:
    """1, or -1 for one that begins at the end."""
    return chain[1].inputs.index - chain[0].inputs.index


def are_equal(some: Sequence[relax.Expr], others: Sequence[relax.Expr]) -> bool:
    """Whether constants are the same ones, or have the same numbers."""
    if len(some) != len(others):
        return False
    return all(
        a.same_as(b) or np.array_equal(numbers_of(a), numbers_of(b))
        for a, b in zip(some, others, strict=True)
    )


def numbers_of(expr: relax.Expr) -> NDArray[np.float32]:
    """The numbers of a constant."""
    value = constant_value(expr)
    assert value is not None  # whoever asks has looked
    return np.asarray(value, np.float32)
