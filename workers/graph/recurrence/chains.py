"""Finding LSTMs that came written out step by step, by what their steps compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.recurrence.layer import GATES
from workers.graph.recurrence.steps import Place, Step, are_equal, direction_of, numbers_of

MIN_STEPS = 3
"""Shorter chains stay as they are."""

Values = Mapping[relax.Var, relax.Expr]


def chains_of(values: Values) -> Iterable[list[Step]]:
    """Runs of steps, each in one direction, of all variables of a graph or module."""
    matcher = _Matcher(values)
    steps = {step.state: step for var in values if (step := matcher.step(var)) is not None}
    followers = {step.state_before: step for step in steps.values()}
    for step in steps.values():
        before = steps.get(step.state_before) if isinstance(step.state_before, relax.Var) else None
        if before is not None and step.follows(before):
            continue  # not the first
        chain = [step]
        while (one := followers.get(chain[-1].state)) is not None and one.follows(chain[-1]):
            if len(chain) > 1 and direction_of(chain) != one.inputs.index - chain[-1].inputs.index:
                break
            chain.append(one)
        if len(chain) >= MIN_STEPS:
            first = matcher.first(chain)
            yield chain if first is None else [first, *chain]


@dataclass(frozen=True)
class _Cell:
    """What an output and its cell are made of; nothing of a cell before there was one."""

    cell: relax.Var
    before: relax.Expr | None
    sums: relax.Expr
    order: Mapping[str, int]


class _Matcher:
    """Recognises steps by the values of variables."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def step(self, state: relax.Var) -> Step | None:
        """The step that gives an output, if it is one behind another."""
        found = self._cell(state)
        if found is None or found.before is None or sorted(found.order.values()) != [0, 1, 2, 3]:
            return None
        terms = self._terms_of(found.sums)
        size = (static_shape(state) or (0,))[-1]
        if terms is None or terms.recurrent is None:
            return None
        weight = constant_value(terms.recurrent.args[1])
        if weight is None or weight.shape != (size, len(GATES) * size):
            return None
        if any(numbers_of(bias).size != len(GATES) * size for bias in terms.biases):
            return None
        return Step(
            state=state,
            cell=found.cell,
            state_before=terms.recurrent.args[0],
            cell_before=found.before,
            inputs=terms.inputs,
            input_weight=terms.input_weight,
            weight=terms.recurrent.args[1],
            biases=terms.biases,
            order=tuple(found.order[gate] for gate in GATES),
        )

    def first(self, chain: Sequence[Step]) -> Step | None:
        """The step in front of a chain that has no state before it: what is 0 was left out."""
        second = chain[0]
        state, order = second.state_before, dict(zip(GATES, second.order, strict=True))
        found = self._cell(state) if isinstance(state, relax.Var) else None
        if found is None or not found.cell.same_as(second.cell_before):
            return None
        if found.before is not None and not _is_zero(found.before):
            return None
        terms = self._terms_of(found.sums)
        if any(order[gate] != place for gate, place in found.order.items()) or terms is None:
            return None
        if terms.recurrent is not None or not second.inputs.is_beside(terms.inputs):
            return None
        if second.inputs.index - terms.inputs.index != direction_of(chain):
            return None
        weights = [w for w in (terms.input_weight, second.input_weight) if w is not None]
        if len(weights) == 1 or (weights and not are_equal(weights[:1], weights[1:])):
            return None
        # The same numbers, which may be added in another order.
        if not np.allclose(_total(terms.biases), _total(second.biases), rtol=1e-6, atol=1e-7):
            return None
        zeros = relax.const(np.zeros(static_shape(state) or (), np.float32))
        return Step(
            state, found.cell, zeros, zeros, terms.inputs, second.input_weight, second.weight,
            second.biases, second.order,
        )  # fmt: skip

    def _cell(self, state: relax.Var) -> _Cell | None:
        """State = sigmoid(output) * tanh(cell), and so on backwards."""
        shown, cell = self._activated(self._call(state, "multiply"))
        if shown is None or not isinstance(cell, relax.Var) or dtype_of(state) != "float32":
            return None
        entered = made = kept = before = None
        for term in self._operands(cell, "add") or (cell,):
            factors = self._call(term, "multiply")
            if factors is None:
                return None
            gate, candidate = self._activated(factors)
            if gate is not None:
                entered, made = gate, candidate
            else:
                kept, before = self._gated(factors)
        gates = {"input": entered, "forget": kept, "cell": made, "output": shown}
        if before is None:
            del gates["forget"]
        found = {name: self._gate(one) for name, one in gates.items()}
        cuts = [one for one in found.values() if one is not None]
        if len(cuts) < len(found) or not all(sums.same_as(cuts[0][0]) for sums, _ in cuts):
            return None
        order = {name: one[1] for name, one in found.items() if one is not None}
        return _Cell(cell, before, cuts[0][0], order)

    def _terms_of(self, sums: relax.Expr) -> _Terms | None:
        """Sums = inputs[step] (times weights) + state_before @ weight + biases, in any order."""
        inputs = input_weight = recurrent = None
        biases = []
        for term in self._terms(sums):
            matmul = self._call(self._unshaped(term), "matmul")
            place = self._place(term if matmul is None else matmul.args[0])
            if constant_value(term) is not None:
                biases.append(term)
            elif place is not None and inputs is None:
                inputs = place
                if matmul is not None:
                    input_weight = matmul.args[1]
                    if constant_value(input_weight) is None:
                        return None
            elif matmul is not None and recurrent is None:
                recurrent = matmul
            else:
                return None
        if inputs is None:
            return None
        return _Terms(inputs, input_weight, recurrent, tuple(biases))

    def _call(self, expr: relax.Expr | None, name: str) -> relax.Call | None:
        value = self._values.get(expr) if isinstance(expr, relax.Var) else None
        is_call = isinstance(value, relax.Call) and getattr(value.op, "name", "") == f"relax.{name}"
        return value if is_call else None

    def _unshaped(self, expr: relax.Expr) -> relax.Expr:
        while (reshape := self._call(expr, "reshape")) is not None:
            expr = reshape.args[0]
        return expr

    def _operands(self, expr: relax.Expr, name: str) -> Sequence[relax.Expr]:
        call = self._call(expr, name)
        return () if call is None else tuple(call.args)

    def _activated(self, call: relax.Call | None) -> tuple[relax.Expr | None, relax.Expr | None]:
        """What sigmoid and tanh are taken of, where a product is of the two."""
        if call is None:
            return None, None
        for one, other in (call.args, reversed(call.args)):
            gate, value = self._call(one, "sigmoid"), self._call(other, "tanh")
            if gate is not None and value is not None:
                return gate.args[0], value.args[0]
        return None, None

    def _gated(self, call: relax.Call) -> tuple[relax.Expr | None, relax.Expr | None]:
        """What sigmoid is taken of, and the other factor."""
        for one, other in (call.args, reversed(call.args)):
            if (gate := self._call(one, "sigmoid")) is not None:
                return gate.args[0], other
        return None, None

    def _gate(self, expr: relax.Expr | None) -> tuple[relax.Expr, int] | None:
        """The tensor of all gates, and which of them an expression is."""
        cut = self._slice(expr)
        if cut is None:
            return None
        data, axis, begin, end = cut
        shape = static_shape(data) or ()
        size = end - begin
        if axis != len(shape) - 1 or shape[axis] != len(GATES) * size or begin % size:
            return None
        return data, begin // size

    def _terms(self, expr: relax.Expr) -> Iterable[relax.Expr]:
        operands = self._operands(expr, "add")
        if not operands:
            yield expr
        for operand in operands:
            yield from self._terms(operand)

    def _place(self, expr: relax.Expr) -> Place | None:
        cut = self._slice(self._unshaped(expr))
        if cut is None:
            return None
        data, axis, begin, end = cut
        shape, own = static_shape(data) or (), static_shape(expr) or ()
        is_step = len(shape) == 3 and axis in (0, 1) and end == begin + 1
        # Rows of a step, or all its numbers where there is one sequence.
        is_step = is_step and own[-1:] == shape[-1:]
        return Place(data, axis, begin) if is_step and isinstance(data, relax.Var) else None

    def _slice(self, expr: relax.Expr | None) -> tuple[relax.Expr, int, int, int] | None:
        """Source, axis, begin and end of a slice of one axis, or of one element taken."""
        call = self._call(expr, "strided_slice")
        if call is None:
            return self._taken(self._call(expr, "take"))
        axes, begins, ends, *strides = (
            [int(field) for field in argument.fields] for argument in call.args[1:]
        )
        shape = static_shape(call.args[0])
        if shape is None or len(axes) != 1 or (strides and strides[0] != [1]):
            return None
        axis = axes[0] % len(shape)
        return call.args[0], axis, begins[0], min(ends[0], shape[axis])

    @staticmethod
    def _taken(call: relax.Call | None) -> tuple[relax.Expr, int, int, int] | None:
        index = None if call is None else constant_value(call.args[1])
        shape = None if call is None else static_shape(call.args[0])
        if call is None or index is None or shape is None or index.size != 1:
            return None
        if call.attrs.axis is None:
            return None
        axis = int(call.attrs.axis) % len(shape)
        place = int(index.reshape(-1)[0]) % shape[axis]
        return call.args[0], axis, place, place + 1


@dataclass(frozen=True)
class _Terms:
    """What sums are the sum of."""

    inputs: Place
    input_weight: relax.Expr | None
    recurrent: relax.Call | None
    biases: tuple[relax.Expr, ...]


def _is_zero(expr: relax.Expr) -> bool:
    array = constant_value(expr)
    return array is not None and not array.any()


def _total(biases: Sequence[relax.Expr]) -> NDArray[np.float32]:
    total = np.zeros(1, np.float32)
    for bias in biases:
        total = total + numbers_of(bias)  # some have a row for each sequence
    return total
