"""Converters of PyTorch's indexing by tensors, and of windows as views."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.frontends.pytorch.reductions import Arguments, Converter, Emit
from workers.graph.graph import constant_value, dtype_of, static_shape


def _index(given: Arguments, emit: Emit) -> relax.Expr:
    """index.Tensor: one index for the axes that have some, as one take along their joined axis.

    Results stand where those axes were, or first where others lie between them, as in NumPy.
    """
    data, indices = given["self"], list(given["indices"])
    shape = static_shape(data)
    if shape is None:
        raise ValueError("an indexed tensor needs a known shape")
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    chosen = [indices[axis] for axis in axes]
    if any(dtype_of(index) in ("bool", "uint8") for index in chosen):
        raise ValueError("a mask as index gives a shape that depends on values")
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        order = [*axes, *(axis for axis in range(len(shape)) if axis not in axes)]
        data = emit(relax.op.permute_dims(data, order))
        shape, first = tuple(shape[axis] for axis in order), 0
    lengths = shape[first : first + len(axes)]
    if len(axes) > 1:
        joined = (*shape[:first], math.prod(lengths), *shape[first + len(axes) :])
        data = emit(relax.op.reshape(data, joined))
    return emit(relax.op.take(data, _flat(chosen, lengths, emit), first))


def _flat(indices: Sequence[relax.Expr], lengths: Sequence[int], emit: Emit) -> relax.Expr:
    """One index into joined axes; negative ones count from the end."""
    arrays = [constant_value(index) for index in indices]
    if not any(array is None for array in arrays):
        return relax.const(_flat_numbers(arrays, lengths), "int64")
    whole = None
    for index, length in zip(indices, lengths, strict=True):
        wide = emit(relax.op.astype(index, "int64"))
        inside = emit(relax.op.floor_mod(wide, relax.const(length, "int64")))
        if whole is None:
            whole = inside
            continue
        whole = emit(relax.op.multiply(whole, relax.const(length, "int64")))
        whole = emit(relax.op.add(whole, inside))
    return whole


def _flat_numbers(arrays: Sequence[Any], lengths: Sequence[int]) -> NDArray[np.int64]:
    inside = [a.astype(np.int64) % n for a, n in zip(arrays, lengths, strict=True)]
    whole = np.zeros((), np.int64)
    for array, length in zip(inside, lengths, strict=True):
        whole = whole * length + array
    return np.asarray(whole)


def _windows(given: Arguments, emit: Emit) -> relax.Expr:
    """unfold: every window of an axis, its elements as a new last axis."""
    data, shape = given["self"], static_shape(given["self"]) or ()
    axis, size, step = int(given["dimension"]) % len(shape), int(given["size"]), int(given["step"])
    starts = np.arange(0, shape[axis] - size + 1, step, dtype=np.int64)
    places = starts[:, None] + np.arange(size)
    apart = emit(relax.op.take(data, relax.const(places, "int64"), axis))
    order = [i for i in range(len(shape) + 1) if i != axis + 1]
    return emit(relax.op.permute_dims(apart, [*order, axis + 1]))


def _embedding(given: Arguments, emit: Emit) -> relax.Expr:
    return emit(relax.op.take(given["weight"], given["indices"], 0))


CONVERTERS: Mapping[str, Converter] = {
    "embedding.default": _embedding,
    "index.Tensor": _index,
    "unfold.default": _windows,
}
"""By the operation's name."""
