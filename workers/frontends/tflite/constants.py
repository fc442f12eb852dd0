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


def _strided_slice(op: Emitter, arrays: list[Array]) -> Array:
    bounds = slice_bounds(op, arrays[0].shape)
    parts = map(slice, bounds.begins, bounds.ends, bounds.strides)
    return arrays[0][tuple(parts)].reshape(bounds.shape)


def _reshaped(op: Emitter, arrays: list[Array]) -> Array:
    return arrays[0].reshape(op.output().shape if len(arrays) == 1 else arrays[1])


def _product(op: Emitter, arrays: list[Array]) -> Array:
    axes = tuple(int(axis) for axis in arrays[1].reshape(-1))
    keep = bool(op.option("keepDims", False))
    return np.asarray(np.prod(arrays[0], axis=axes, keepdims=keep))


_OF_SHAPES: Mapping[str, Callable[[tuple[int, ...]], Array]] = {
    "RANK": lambda shape: np.array(len(shape)),
    "SHAPE": np.array,
    "ZEROS_LIKE": np.zeros,
}
"""What needs no values of its input."""

_FOLDS: Mapping[str, Fold] = {
    "ADD": lambda _, arrays: arrays[0] + arrays[1],
    "CAST": lambda op, arrays: arrays[0].astype(op.output().dtype),
    "CONCATENATION": lambda op, arrays: np.concatenate(arrays, op.option("axis", 0)),
    "EQUAL": lambda _, arrays: np.equal(arrays[0], arrays[1]),
    "EXPAND_DIMS": lambda _, arrays: np.expand_dims(arrays[0], arrays[1].item()),
    "FILL": lambda _, arrays: np.full(tuple(arrays[0].tolist()), arrays[1]),
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
    "NOT_EQUAL": lambda _, arrays: np.not_equal(arrays[0], arrays[1]),
    "PACK": lambda op, arrays: np.stack(arrays, op.option("axis", 0)),
    "RANGE": lambda _, arrays: np.arange(*(array.item() for array in arrays)),
    "REDUCE_PROD": _product,
    "RESHAPE": _reshaped,
    "SQUEEZE": lambda op, arrays: arrays[0].reshape(op.output().shape),
    "STRIDED_SLICE": _strided_slice,
    "SUB": lambda _, arrays: arrays[0] - arrays[1],
    "TRANSPOSE": lambda _, arrays: arrays[0].transpose(arrays[1].reshape(-1)),
}
