"""GRU of ONNX, step by step: no accelerator has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.frontends.onnx_operands import Inputs, Scope, operand, real_constant
from workers.graph.graph import dtype_of, static_shape

Array = NDArray[Any]


@dataclass(frozen=True)
class _Layer:
    """One direction of a layer while it is unrolled.

    Attributes:
        emit: binds an expression.
        recurrent: weights of the state, [3 * hidden, hidden].
        bias: of the recurrent product, [3 * hidden].
        hidden: size of the state.
        is_reset_late: whether the state is reset behind its product.
    """

    emit: Callable[[relax.Expr], relax.Expr]
    recurrent: Array
    bias: Array
    hidden: int
    is_reset_late: bool

    def product(self, state: relax.Expr, begin: int, end: int) -> relax.Expr:
        """The state times the weights of some gates, with their bias."""
        rows = slice(begin * self.hidden, end * self.hidden)
        weight = relax.const(np.ascontiguousarray(self.recurrent[rows].T))
        value = self.emit(relax.op.matmul(state, weight))
        if self.bias[rows].any():
            value = self.emit(relax.op.add(value, relax.const(self.bias[rows])))
        return value

    def gates(self, value: relax.Expr, count: int) -> list[relax.Expr]:
        """The parts of a value that has several gates side by side."""
        parts = self.emit(relax.op.split(value, count, -1))
        return [self.emit(relax.TupleGetItem(parts, i)) for i in range(count)]

    def step(self, step: relax.Expr, hidden: relax.Expr) -> relax.Expr:
        """The next state, of a step's input product with its bias and the state."""
        emit = self.emit
        update_in, reset_in, new_in = self.gates(step, 3)
        update_h, reset_h = self.gates(self.product(hidden, 0, 2), 2)
        update = emit(relax.op.sigmoid(emit(relax.op.add(update_in, update_h))))
        reset = emit(relax.op.sigmoid(emit(relax.op.add(reset_in, reset_h))))
        if self.is_reset_late:
            inner = emit(relax.op.multiply(reset, self.product(hidden, 2, 3)))
        else:
            inner = self.product(emit(relax.op.multiply(reset, hidden)), 2, 3)
        new = emit(relax.op.tanh(emit(relax.op.add(new_in, inner))))
        # (1 - update) * new + update * hidden
        moved = emit(relax.op.multiply(update, emit(relax.op.subtract(hidden, new))))
        return emit(relax.op.add(new, moved))


def gru(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr:
    """Outputs of all steps [steps, directions, batch, hidden] and the last [directions, ...]."""
    is_batch_first = bool(attrs.get("layout", 0))
    if is_batch_first:
        inputs = [_turned(data, scope) if at in (0, 5) else data for at, data in enumerate(inputs)]
    _check(inputs, attrs)
    directions = {b"forward": (1,), b"reverse": (-1,), b"bidirectional": (1, -1)}
    runs = [
        _run(inputs, attrs, scope, number, direction)
        for number, direction in enumerate(directions[attrs.get("direction", b"forward")])
    ]
    sequence = scope.emit(relax.op.stack([outputs for outputs, _ in runs], axis=1))
    last = scope.emit(relax.op.stack([state for _, state in runs], axis=0))
    if is_batch_first:  # [batch, steps, directions, hidden], and [batch, directions, hidden]
        sequence = scope.emit(relax.op.permute_dims(sequence, [2, 0, 1, 3]))
        last = _turned(last, scope)
    return relax.Tuple([sequence, last])


def _turned(data: relax.Expr | None, scope: Scope) -> relax.Expr | None:
    return None if data is None else scope.emit(relax.op.permute_dims(data, [1, 0, 2]))


def _check(inputs: Inputs, attrs: dict[str, Any]) -> None:
    shape, lengths = static_shape(inputs[0]), real_constant(inputs, 4)
    if shape is None or any(real_constant(inputs, at) is None for at in (1, 2)):
        raise ValueError("the sequence needs a known length and the weights have to be constants")
    if operand(inputs, 4) is not None and (lengths is None or (lengths != shape[0]).any()):
        raise ValueError("sequences of several lengths in one batch are not supported")
    if "clip" in attrs:
        raise ValueError("clipping is not supported")
    usual = (b"Sigmoid", b"Tanh")
    if tuple(attrs.get("activations", usual)) not in (usual, usual * 2):
        raise ValueError("activations other than the usual ones are not supported")


def _run(
    inputs: Inputs, attrs: dict[str, Any], scope: Scope, number: int, direction: int
) -> tuple[relax.Expr, relax.Expr]:
    """One direction over the whole sequence: [steps, batch, hidden] and the last state."""
    weight, recurrent, biases = (real_constant(inputs, at) for at in (1, 2, 3))
    assert weight is not None  # _check asked
    assert recurrent is not None
    length, batch, _ = static_shape(inputs[0]) or (0, 0, 0)
    hidden, dtype = int(recurrent.shape[2]), dtype_of(inputs[0])
    if biases is None:
        biases = np.zeros((number + 1, 6 * hidden), dtype)
    own, other = np.split(biases[number], 2)
    is_reset_late = bool(attrs.get("linear_before_reset", 0))
    layer = _Layer(scope.emit, recurrent[number], other, hidden, is_reset_late)
    product = scope.emit(
        relax.op.matmul(inputs[0], relax.const(np.ascontiguousarray(weight[number].T)))
    )
    product = scope.emit(relax.op.add(product, relax.const(own)))
    state = _initial(operand(inputs, 5), number, (batch, hidden), dtype, scope)
    outputs = []
    for position in range(length)[::direction]:
        row = scope.emit(relax.op.strided_slice(product, [0], [position], [position + 1]))
        state = layer.step(scope.emit(relax.op.squeeze(row, [0])), state)
        outputs.append(state)
    return scope.emit(relax.op.stack(outputs[::direction], axis=0)), state


def _initial(
    given: relax.Expr | None, number: int, shape: tuple[int, int], dtype: str, scope: Scope
) -> relax.Expr:
    if given is None:
        return relax.const(np.zeros(shape, dtype))
    one = scope.emit(relax.op.strided_slice(given, [0], [number], [number + 1]))
    return scope.emit(relax.op.squeeze(one, [0]))
