"""LSTMs that a frontend wrote out step by step, put back into one call.

NNAPI's networks have no loops, so frontends unroll them; on the CPU every step would be several
calls of kernels that take less time than the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import bound_values, rewritten
from workers.backends.cpu.operators.lstm import GATES, LstmSequence, lstm_kernel, packed_weight
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, dtype_of, static_shape

MIN_STEPS = 3
"""Shorter chains stay as they are: the first step has constants for its state and is another."""

Values = Mapping[relax.Var, relax.Expr]


def roll_lstms(module: tvm.IRModule, vectors: Vectors) -> tvm.IRModule:
    """The module with chains of LSTM steps as single calls."""
    values = bound_values(module)
    chains = list(_Matcher(values).chains())
    if not chains:
        return module
    rolled = rewritten(module, _Roller(module, vectors, values, chains))
    result: tvm.IRModule = relax.transform.DeadCodeElimination()(rolled)
    return result


@dataclass(frozen=True)
class _Place:
    """One position of a tensor of three axes: `source` at `index` of `axis`."""

    source: relax.Var
    axis: int
    index: int


@dataclass(frozen=True)
class _Step:
    """One step: variables of its results and of the step before, and what it computes with."""

    state: relax.Var
    cell: relax.Var
    state_before: relax.Expr
    cell_before: relax.Expr
    inputs: _Place
    weight: relax.Expr
    biases: tuple[relax.Expr, ...]
    order: tuple[int, ...]

    def follows(self, other: _Step) -> bool:
        """Whether this is the next step of the same layer."""
        here, there = self.inputs, other.inputs
        return (
            self.cell_before.same_as(other.cell)
            and here.source.same_as(there.source)
            and here.axis == there.axis
            and abs(here.index - there.index) == 1
            and self.order == other.order
            and _are_equal((self.weight, *self.biases), (other.weight, *other.biases))
        )


def _are_equal(some: Sequence[relax.Expr], others: Sequence[relax.Expr]) -> bool:
    if len(some) != len(others):
        return False
    return all(
        a.same_as(b) or np.array_equal(_array(a), _array(b))
        for a, b in zip(some, others, strict=True)
    )


def _array(expr: relax.Expr) -> NDArray[np.float32]:
    value = constant_value(expr)
    assert value is not None  # _matched asked
    return np.asarray(value, np.float32)


class _Matcher:
    """Recognises steps by the values of variables."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def chains(self) -> Iterable[list[_Step]]:
        """Runs of steps, each in one direction."""
        steps = [step for var in self._values if (step := self._step(var)) is not None]
        followers = {step.state_before: step for step in steps}
        for step in steps:
            if any(step.state_before.same_as(one.state) and step.follows(one) for one in steps):
                continue  # not the first
            chain = [step]
            while (one := followers.get(chain[-1].state)) is not None and one.follows(chain[-1]):
                if (
                    len(chain) > 1
                    and _direction(chain) != one.inputs.index - chain[-1].inputs.index
                ):
                    break
                chain.append(one)
            if len(chain) >= MIN_STEPS:
                yield chain

    def _step(self, state: relax.Var) -> _Step | None:
        """State = sigmoid(output) * tanh(cell), and so on backwards."""
        shown, cell = self._activated(self._call(state, "multiply"))
        if shown is None or not isinstance(cell, relax.Var):
            return None
        kept = entered = made = before = None
        for term in self._operands(cell, "add"):
            factors = self._call(term, "multiply")
            if factors is None:
                return None
            gate, candidate = self._activated(factors)
            if gate is not None:
                entered, made = gate, candidate
            else:
                kept, before = self._gated(factors)
        gates = [self._gate(one) for one in (entered, kept, made, shown)]
        if before is None or None in gates:
            return None
        totals, order = zip(*[gate for gate in gates if gate is not None], strict=True)
        if not all(total.same_as(totals[0]) for total in totals) or sorted(order) != [0, 1, 2, 3]:
            return None
        return self._matched(state, cell, before, totals[0], order)

    def _matched(
        self,
        state: relax.Var,
        cell: relax.Var,
        before: relax.Expr,
        total: relax.Expr,
        order: tuple[int, ...],
    ) -> _Step | None:
        """Total = inputs[step] + state_before @ weight + biases, in any order."""
        inputs, product, biases = None, None, []
        for term in self._terms(total):
            matmul = self._call(term, "matmul")
            if constant_value(term) is not None:
                biases.append(term)
            elif matmul is not None and product is None:
                product = matmul
            elif inputs is None:
                inputs = self._place(term)
            else:
                return None
        if inputs is None or product is None:
            return None
        state_before, weight = product.args
        size = (static_shape(state) or (0,))[-1]
        array, gates = constant_value(weight), GATES * size
        if array is None or array.shape != (size, gates) or dtype_of(weight) != "float32":
            return None
        if any(_array(bias).size != gates for bias in biases):
            return None
        return _Step(state, cell, state_before, before, inputs, weight, tuple(biases), order)

    def _call(self, expr: relax.Expr | None, name: str) -> relax.Call | None:
        value = self._values.get(expr) if isinstance(expr, relax.Var) else None
        is_call = isinstance(value, relax.Call) and getattr(value.op, "name", "") == f"relax.{name}"
        return value if is_call else None

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
        if axis != len(shape) - 1 or shape[axis] != GATES * size or begin % size:
            return None
        return data, begin // size

    def _terms(self, expr: relax.Expr) -> Iterable[relax.Expr]:
        operands = self._operands(expr, "add")
        if not operands:
            yield expr
        for operand in operands:
            yield from self._terms(operand)

    def _place(self, expr: relax.Expr) -> _Place | None:
        reshape = self._call(expr, "reshape")
        cut = self._slice(reshape.args[0] if reshape is not None else expr)
        if cut is None:
            return None
        data, axis, begin, end = cut
        shape = static_shape(data) or ()
        is_step = len(shape) == 3 and axis in (0, 1) and end == begin + 1
        return _Place(data, axis, begin) if is_step and isinstance(data, relax.Var) else None

    def _slice(self, expr: relax.Expr | None) -> tuple[relax.Expr, int, int, int] | None:
        """Source, axis, begin and end of a slice of one axis."""
        call = self._call(expr, "strided_slice")
        if call is None:
            return None
        axes, begins, ends, *strides = (
            [int(field) for field in argument.fields] for argument in call.args[1:]
        )
        shape = static_shape(call.args[0])
        if shape is None or len(axes) != 1 or (strides and strides[0] != [1]):
            return None
        axis = axes[0] % len(shape)
        return call.args[0], axis, begins[0], min(ends[0], shape[axis])


def _direction(chain: Sequence[_Step]) -> int:
    return chain[1].inputs.index - chain[0].inputs.index


@mutator
class _Roller(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(
        self,
        module: tvm.IRModule,
        vectors: Vectors,
        values: Values,
        chains: Iterable[list[_Step]],
    ) -> None:
        super().__init__(module)
        self._vectors = vectors
        self._values = values
        self._calls: dict[relax.Var, relax.Var] = {}
        self._results: dict[relax.Var, tuple[list[_Step], int | None]] = {}
        for chain in chains:
            first = min(chain[0].inputs.index, chain[-1].inputs.index)
            for step in chain:
                self._results[step.state] = chain, step.inputs.index - first
            self._results[chain[-1].cell] = chain, None

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        """PyExprMutator's name for it."""
        found = self._results.get(binding.var)
        if found is None:
            super().visit_var_binding_(binding)
            return
        chain, position = found
        call = self._call_of(chain)
        shape = relax.ShapeExpr(static_shape(binding.var))
        value: relax.Expr = self.builder_.emit(relax.TupleGetItem(call, int(position is None)))
        if position is not None:
            one = relax.op.strided_slice(value, [0], [position], [position + 1])
            value = self.builder_.emit(one)
        self.set_var_remap(binding.var, self.builder_.emit(relax.op.reshape(value, shape)))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """Stacks of states take neighbouring ones at once."""
        operands = call.args[0] if call.args else None
        if getattr(call.op, "name", "") != "relax.concat" or not isinstance(operands, relax.Tuple):
            return super().visit_call_(call)
        axis = int(call.attrs.axis or 0) % len(static_shape(call) or (0,))
        fields: list[relax.Expr] = []
        rest = list(operands.fields)
        while rest:
            count = self._neighbours(rest, axis)
            if count > 1:
                fields.append(self._states(rest, count, axis))
            else:
                fields.append(self.visit_expr(rest[0]))
            rest = rest[count:]
        return relax.Call(call.op, [relax.Tuple(fields)], call.attrs, call.ty_args)

    def _neighbours(self, fields: Sequence[relax.Expr], axis: int) -> int:
        """How many of the first fields are consecutive states of one layer, or 1."""
        first, shape = self._state(fields[0]), static_shape(fields[0])
        if first is None or shape is None or any(size != 1 for size in shape[: axis + 1]):
            return 1
        count = 1
        for field in fields[1:]:
            state = self._state(field)
            if state is None or state[0] is not first[0] or state[1] != first[1] + count:
                break
            count += 1
        return count

    def _state(self, expr: relax.Expr) -> tuple[list[_Step], int] | None:
        """Layer and position of a state, whatever shape it has been given."""
        while isinstance(value := self._values.get(expr), relax.Call):
            if getattr(value.op, "name", "") != "relax.reshape":
                break
            expr = value.args[0]
        found = self._results.get(expr)
        if found is None or found[1] is None:
            return None
        return found[0], found[1]

    def _states(self, fields: Sequence[relax.Expr], count: int, axis: int) -> relax.Expr:
        found = self._state(fields[0])
        assert found is not None  # counted by _neighbours
        chain, position = found
        shape = list(static_shape(fields[0]) or ())
        shape[axis] = count
        emit = self.builder_.emit
        states = emit(relax.TupleGetItem(self._call_of(chain), 0))
        if count != len(chain):
            cut = relax.op.strided_slice(states, [0], [position], [position + count])
            states = emit(cut)
        return emit(relax.op.reshape(states, relax.ShapeExpr(shape)))

    def _call_of(self, chain: list[_Step]) -> relax.Var:
        first = chain[0]
        if first.state in self._calls:
            return self._calls[first.state]
        emit, visit = self.builder_.emit, self.visit_expr
        hidden = (static_shape(first.state) or (0,))[-1]
        place = first.inputs
        rows, columns, gates = static_shape(place.source) or (0, 0, 0)
        sequence = LstmSequence(
            (rows, columns, gates),
            place.axis,
            place.index,
            _direction(chain),
            len(chain),
            hidden,
            first.order,
        )
        inputs = visit(place.source)
        for bias in first.biases:
            inputs = emit(relax.op.add(inputs, relax.const(_array(bias).reshape(-1))))
        states = (sequence.batch, hidden)
        before = [
            emit(relax.op.reshape(visit(expr), relax.ShapeExpr(states)))
            for expr in (first.state_before, first.cell_before)
        ]
        weight = relax.const(packed_weight(_array(first.weight), hidden, self._vectors))
        function = self.builder_.add_func(lstm_kernel(sequence, self._vectors), "lstm")
        results = [
            relax.TensorType((sequence.length, *states), "float32"),
            relax.TensorType(states, "float32"),
        ]
        call = relax.call_tir(function, relax.Tuple([inputs, weight, *before]), results)
        self._calls[first.state] = emit(call)
        return self._calls[first.state]
