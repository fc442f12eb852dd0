"""Recurrent layers that the graph has as one call: a kernel of their own, or step by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import bound_values, rewritten
from workers.backends.cpu.operators.gru import GATES as GRU_GATES
from workers.backends.cpu.operators.gru import gru_kernel, packed_bias
from workers.backends.cpu.operators.lstm import LstmSequence, lstm_kernel, packed_weight
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.recurrence.layer import BACKWARD, GATES, GRU, LSTM, Recurrence, recurrence_of
from workers.graph.recurrence.written_out import written_out


def lower_layers(module: tvm.IRModule, vectors: Vectors) -> tvm.IRModule:
    """The module without calls of recurrent layers."""
    if not any(recurrence_of(value) for value in bound_values(module).values()):
        return module
    lowered = rewritten(module, _Lowering(module, vectors))
    result: tvm.IRModule = relax.transform.DeadCodeElimination()(lowered)  # results nobody reads
    return result


@mutator
class _Lowering(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(self, module: tvm.IRModule, vectors: Vectors) -> None:
        super().__init__(module)
        self._vectors = vectors
        self._results: dict[relax.Var, list[relax.Expr]] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        """PyExprMutator's name for it."""
        value = binding.value
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in self._results:
            self.set_var_remap(binding.var, self._results[value.tuple_value][value.index])
            return
        recurrence = recurrence_of(value)
        if recurrence is None:
            super().visit_var_binding_(binding)
            return
        operands = {name: self.visit_expr(one) for name, one in recurrence.operands.items()}
        self._results[binding.var] = self._lowered(Recurrence(recurrence.layer, operands))

    def _lowered(self, recurrence: Recurrence) -> list[relax.Expr]:
        emit = self.builder_.emit
        if not _has_kernel(recurrence):
            return written_out(recurrence, emit)
        ways = [self._way(recurrence, way) for way in recurrence.layer.ways]
        whole = [states for states, *_ in ways]
        joined = whole[0] if len(whole) == 1 else emit(relax.op.concat(whole, -1))
        return [joined, *(last for _, *both in ways for last in both)]

    def _way(self, recurrence: Recurrence, way: str) -> tuple[relax.Expr, ...]:
        """Outputs of a direction in the input's order of axes, the last, an LSTM's last cell."""
        emit, operands = self.builder_.emit, recurrence.of_way(way)
        batch, hidden, steps = recurrence.batch, recurrence.width(way), recurrence.steps
        axis, is_backward = recurrence.steps_axis, way == BACKWARD
        if recurrence.layer.cell == GRU:
            weights, biases = _array(operands["weights"]).T, _array(operands["bias"])
        else:
            weights = _joined(operands, "input_to_{}_weights")
            biases = np.concatenate([_array(operands[name]) for name in _BIASES])
        product = emit(relax.op.matmul(recurrence.data, relax.const(weights)))
        sums = emit(relax.op.add(product, relax.const(biases)))
        shape = static_shape(sums) or ()
        if recurrence.is_step:
            axis, shape = 0, (1, *shape)
            sums = emit(relax.op.reshape(sums, shape))
        first, step = (steps - 1, -1) if is_backward else (0, 1)
        sequence = LstmSequence(
            (shape[0], shape[1], shape[2]), axis, first, step, steps, hidden, _ORDER
        )
        call = self._gru if recurrence.layer.cell == GRU else self._lstm
        states, *cells = call(sequence, sums, operands)
        final = 0 if is_backward else steps - 1
        last = emit(relax.op.strided_slice(states, [0], [final], [final + 1]))
        output = emit(relax.op.reshape(last, (batch, hidden)))
        if recurrence.is_step:
            return output, output, *cells
        if axis == 1:
            states = emit(relax.op.permute_dims(states, [1, 0, 2]))
        return states, output, *cells

    def _gru(
        self, sequence: LstmSequence, sums: relax.Expr, operands: Mapping[str, relax.Expr]
    ) -> tuple[relax.Expr]:
        emit, hidden, vectors = self.builder_.emit, sequence.hidden, self._vectors
        recurrent = np.ascontiguousarray(_array(operands["recurrent_weights"]).T)
        weight = relax.const(packed_weight(recurrent, hidden, vectors, GRU_GATES))
        bias = relax.const(packed_bias(_array(operands["recurrent_bias"]), hidden, vectors))
        function = self.builder_.add_func(gru_kernel(sequence, vectors), "gru")
        result = relax.TensorType((sequence.length, sequence.batch, hidden), "float32")
        given = relax.Tuple([sums, weight, bias, operands["state_in"]])
        return (emit(relax.call_tir(function, given, result)),)

    def _lstm(
        self, sequence: LstmSequence, sums: relax.Expr, operands: Mapping[str, relax.Expr]
    ) -> tuple[relax.Expr, relax.Expr]:
        emit, hidden = self.builder_.emit, sequence.hidden
        recurrent = _joined(operands, "recurrent_to_{}_weights")
        weight = relax.const(packed_weight(recurrent, hidden, self._vectors))
        function = self.builder_.add_func(lstm_kernel(sequence, self._vectors), "lstm")
        results = [
            relax.TensorType((sequence.length, sequence.batch, hidden), "float32"),
            relax.TensorType((sequence.batch, hidden), "float32"),
        ]
        before = [operands["state_in"], operands["cell_state_in"]]
        call = emit(relax.call_tir(function, relax.Tuple([sums, weight, *before]), results))
        return emit(relax.TupleGetItem(call, 0)), emit(relax.TupleGetItem(call, 1))


_BIASES = tuple("cell_bias" if gate == "cell" else f"{gate}_gate_bias" for gate in GATES)
_ORDER = tuple(range(len(GATES)))
"""Where the kernel finds the gates: in the order of their names."""

_PLAIN = {
    *(f"{kind}_{gate}_weights" for kind in ("input_to", "recurrent_to") for gate in GATES),
    *_BIASES, "state_in", "cell_state_in",
}  # fmt: skip
"""Operands of an LSTM that the kernel knows, all of them."""


def _has_kernel(recurrence: Recurrence) -> bool:
    layer = recurrence.layer
    if layer.activation != "tanh" or dtype_of(recurrence.data) != "float32":
        return False
    if layer.cell == GRU:
        return layer.is_reset_late
    if layer.cell != LSTM or layer.cell_clip > 0:
        return False
    states = {"state_in", "cell_state_in"}
    return all(
        set(operands) == _PLAIN
        and all(constant_value(operands[name]) is not None for name in _PLAIN - states)
        for operands in map(recurrence.of_way, layer.ways)
    )


def _array(expr: relax.Expr) -> NDArray[np.float32]:
    array = constant_value(expr)
    assert array is not None  # _has_kernel asked
    return np.asarray(array, np.float32)


def _joined(operands: Mapping[str, relax.Expr], role: str) -> NDArray[np.float32]:
    """Weights of all gates side by side, [width, gates * hidden]."""
    parts = [_array(operands[role.format(gate)]) for gate in GATES]
    return np.ascontiguousarray(np.concatenate(parts).T)
