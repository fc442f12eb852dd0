"""What recurrent layers have in common: the layer's options, constant operands, its state."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Emitter
from workers.graph.graph import constant_value
from workers.graph.recurrence.layer import Layer, Recurrence

STATE_NOTE = (
    "Its state begins with zeros in every run, as after reset_all_variables: a package keeps "
    "nothing from one run to the next."
)

_ACTIVATIONS = {0: "none", 1: "relu", 2: "relu1", 3: "relu6", 4: "tanh"}
"""By ActivationFunctionType."""


def layer_of(op: Emitter, cell: str, directions: str) -> Layer:
    """The operator's layer without its operands."""
    activation = op.option("fusedActivationFunction", 0)
    if activation not in _ACTIVATIONS:
        raise op.unsupported(f"has the fused activation {activation}")
    return Layer(
        cell,
        _ACTIVATIONS[activation],
        directions,
        bool(op.option("timeMajor", False)),
        float(op.option("cellClip", 0.0)),
        float(op.option("projClip", 0.0)),
    )


def outputs_of(op: Emitter, layer: Layer, operands: Mapping[str, relax.Expr]) -> relax.Expr:
    """Emit a layer; the outputs of its steps, those of two directions side by side.

    Args:
        op: the operator, whose first input is the data.
        layer: its layer.
        operands: all but the data, each with its way in front.
    """
    call = op.emit(Recurrence(layer, {"input": op.real(0), **operands}).call())
    return op.emit(relax.TupleGetItem(call, 0))


def batch_of(op: Emitter, is_sequence: bool) -> int:
    """Number of sequences."""
    return op.shape(0)[1 if is_sequence and op.option("timeMajor", False) else 0]


def weights_of(op: Emitter, position: int) -> relax.Expr:
    """An input as real numbers; constant integers become them now.

    A layer on 8 bits is computed in real numbers between its first and its last step: no unit needs
    the integers of its weights, of which some have 16 bits.
    """
    tensor = op.tensor(position)
    if tensor.value is None or tensor.quantization is None:
        return op.real(position)
    return relax.const(tensor.quantization.dequantize(tensor.value))


def part_of(op: Emitter, value: relax.Expr, axis: int, begin: int, end: int) -> relax.Expr:
    """Neighbouring rows or columns; of constants a constant."""
    array = constant_value(value)
    if array is None:
        return op.emit(relax.op.strided_slice(value, [axis], [begin], [end]))
    return relax.const(np.ascontiguousarray(np.take(array, range(begin, end), axis)))


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
