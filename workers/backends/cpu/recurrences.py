"""LSTMs that came written out step by step, put back into one call of a kernel.

Every step would be several calls of kernels that take less time than the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import bound_values, rewritten
from workers.backends.cpu.operators.lstm import GATES, LstmSequence, lstm_kernel, packed_weight
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import static_shape
from workers.graph.recurrence.chains import Values, chains_of
from workers.graph.recurrence.steps import Step, direction_of, numbers_of


def roll_lstms(module: tvm.IRModule, vectors: Vectors) -> tvm.IRModule:
    """The module with chains of LSTM steps as single calls."""
    values = bound_values(module)
    chains = list(chains_of(values))
    if not chains:
        return module
    rolled = rewritten(module, _Roller(module, vectors, values, chains))
    result: tvm.IRModule = relax.transform.DeadCodeElimination()(rolled)
    return result


@mutator
class _Roller(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(
        self,
        module: tvm.IRModule,
        vectors: Vectors,
        values: Values,
        chains: Iterable[list[Step]],
    ) -> None:
        super().__init__(module)
        self._vectors = vectors
        self._values = values
        self._calls: dict[relax.Var, relax.Var] = {}
        self._results: dict[relax.Var, tuple[list[Step], int | None]] = {}
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

    def _state(self, expr: relax.Expr) -> tuple[list[Step], int] | None:
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

    def _call_of(self, chain: list[Step]) -> relax.Var:
        first = chain[0]
        if first.state in self._calls:
            return self._calls[first.state]
        emit, visit = self.builder_.emit, self.visit_expr
        hidden = (static_shape(first.state) or (0,))[-1]
        place = first.inputs
        rows, columns, _ = static_shape(place.source) or (0, 0, 0)
        sequence = LstmSequence(
            (rows, columns, GATES * hidden),
            place.axis,
            place.index,
            direction_of(chain),
            len(chain),
            hidden,
            first.order,
        )
        inputs = visit(place.source)
        if first.input_weight is not None:
            inputs = emit(relax.op.matmul(inputs, first.input_weight))
        for bias in first.biases:
            inputs = emit(relax.op.add(inputs, relax.const(numbers_of(bias).reshape(-1))))
        states = (sequence.batch, hidden)
        before = [
            emit(relax.op.reshape(visit(expr), relax.ShapeExpr(states)))
            for expr in (first.state_before, first.cell_before)
        ]
        weight = relax.const(packed_weight(numbers_of(first.weight), hidden, self._vectors))
        function = self.builder_.add_func(lstm_kernel(sequence, self._vectors), "lstm")
        results = [
            relax.TensorType((sequence.length, *states), "float32"),
            relax.TensorType(states, "float32"),
        ]
        call = relax.call_tir(function, relax.Tuple([inputs, weight, *before]), results)
        self._calls[first.state] = emit(call)
        return self._calls[first.state]
