"""Operators on constants, computed while the model is read.

Converters of models write the arithmetic of shapes into the graph ("the batch, then all the rest"):
with fixed shapes it has one result, and what takes it wants a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.frontends.tflite.emitter import Emitter
from workers.frontends.tflite.slicing import slice_bounds

Array = NDArray[Any]
Fold = Callable[[Emitter, list[Array]], Array]


def fold(op: Emitter) -> bool:
    """Give the result of an operator now, where that can be done; whether it was."""
    function = _FOLDS.get(op.operator.name)
    if op.operator.name == "UNPACK":
        return _unpacked(op)
    if op.operator.name in _OF_SHAPES:
        arrays = [_OF_SHAPES[op.operator.name](op.shape(0))]
    elif function is None or op.output().quantization or op.option("fusedActivationFunction", 0):
        return False
    else:
        given = [op.constant(i) for i in range(len(op.operator.inputs)) if op.has(i)]
        arrays = [array for array in given if array is not None]
        if len(arrays) != len(given):
            return False
    result = arrays[0] if function is None else function(op, arrays)
    dtype = op.output().dtype
    op.give_raw(relax.const(np.asarray(result, dtype, order="C"), dtype))
    return True


def _unpacked(op: Emitter) -> bool:
    """Numbers of a shape one by one; whether it is known."""
    array = op.constant(0)
    if array is None or op.output().quantization:
        return False
    axis = int(op.option("axis", 0))
    for position in range(len(op.operator.outputs)):
        part = np.asarray(np.take(array, position, axis), op.output(position).dtype, order="C")
        op.give_raw(relax.const(part), position)
    return True


def _sliced(_: Emitter, arrays: list[Array]) -> Array:
    data, begins, sizes = arrays
    ends = [b + n if n >= 0 else None for b, n in zip(begins, sizes, strict=True)]
    return data[tuple(map(slice, begins.tolist(), ends))]


def _quotient(_: Emitter, arrays: list[Array]) -> Array:
    """Of integers towards zero."""
    exact = np.divide(arrays[0], arrays[1])
    return np.trunc(exact) if arrays[0].dtype.kind == "i" else exact


def _reduced(function: Callable[..., Array]) -> Fold:
    def reduce(op: Emitter, arrays: list[Array]) -> Array:
        axes = tuple(int(axis) for axis in arrays[1].reshape(-1))
        return np.asarray(
            function(arrays[0], axis=axes, keepdims=bool(op.option("keepDims", False)))
        )

    return reduce


def _strided_slice(op: Emitter, arrays: list[Array]) -> Array:
    bounds = slice_bounds(op, arrays[0].shape)
    parts = map(slice, bounds.begins, bounds.ends, bounds.strides)
    return arrays[0][tuple(parts)].reshape(bounds.shape)


def _reshaped(op: Emitter, arrays: list[Array]) -> Array:
    return arrays[0].reshape(op.output().shape if len(arrays) == 1 else arrays[1])


_OF_SHAPES: Mapping[str, Callable[[tuple[int, ...]], Array]] = {
    "RANK": lambda shape: np.array(len(shape)),
    "SHAPE": np.array,
    "ZEROS_LIKE": np.zeros,
}
"""What needs no values of its input."""

_FOLDS: Mapping[str, Fold] = {
    "ADD": lambda _, arrays: arrays[0] + arrays[1],
    "BROADCAST_ARGS": lambda _, arrays: np.array(np.broadcast_shapes(*map(tuple, arrays))),
    "BROADCAST_TO": lambda _, arrays: np.broadcast_to(arrays[0], arrays[1].tolist()),
    "CAST": lambda op, arrays: arrays[0].astype(op.output().dtype),
    "CONCATENATION": lambda op, arrays: np.concatenate(arrays, op.option("axis", 0)),
    "DIV": _quotient,
    "EQUAL": lambda _, arrays: np.equal(arrays[0], arrays[1]),
    "EXPAND_DIMS": lambda _, arrays: np.expand_dims(arrays[0], arrays[1].item()),
    "FILL": lambda _, arrays: np.full(tuple(arrays[0].tolist()), arrays[1]),
    "FLOOR_DIV": lambda _, arrays: np.floor_divide(arrays[0], arrays[1]),
    "FLOOR_MOD": lambda _, arrays: np.mod(arrays[0], arrays[1]),
    "GATHER": lambda op, arrays: np.take(arrays[0], arrays[1], op.option("axis", 0)),
    "GREATER": lambda _, arrays: np.greater(arrays[0], arrays[1]),
    "GREATER_EQUAL": lambda _, arrays: np.greater_equal(arrays[0], arrays[1]),
    "LESS": lambda _, arrays: np.less(arrays[0], arrays[1]),
    "LESS_EQUAL": lambda _, arrays: np.less_equal(arrays[0], arrays[1]),
    "LOGICAL_AND": lambda _, arrays: np.logical_and(arrays[0], arrays[1]),
    "LOGICAL_NOT": lambda _, arrays: np.logical_not(arrays[0]),
    "LOGICAL_OR": lambda _, arrays: np.logical_or(arrays[0], arrays[1]),
    "MAXIMUM": lambda _, arrays: np.maximum(arrays[0], arrays[1]),
    "MINIMUM": lambda _, arrays: np.minimum(arrays[0], arrays[1]),
    "MUL": lambda _, arrays: arrays[0] * arrays[1],
    "NEG": lambda _, arrays: np.negative(arrays[0]),
    "NOT_EQUAL": lambda _, arrays: np.not_equal(arrays[0], arrays[1]),
    "PACK": lambda op, arrays: np.stack(arrays, op.option("axis", 0)),
    "RANGE": lambda _, arrays: np.arange(*(array.item() for array in arrays)),
    "REDUCE_MAX": _reduced(np.max),
    "REDUCE_MIN": _reduced(np.min),
    "REDUCE_PROD": _reduced(np.prod),
    "RESHAPE": _reshaped,
    "SELECT_V2": lambda _, arrays: np.where(*arrays),
    "SLICE": _sliced,
    "SQUEEZE": lambda op, arrays: arrays[0].reshape(op.output().shape),
    "STRIDED_SLICE": _strided_slice,
    "SUM": _reduced(np.sum),
    "SUB": lambda _, arrays: arrays[0] - arrays[1],
    "TILE": lambda _, arrays: np.tile(arrays[0], arrays[1].tolist()),
    "TRANSPOSE": lambda _, arrays: arrays[0].transpose(arrays[1].reshape(-1)),
}
