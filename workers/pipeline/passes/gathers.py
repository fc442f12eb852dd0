"""Gathers and scatters at known positions, as rows taken from a matrix.

Exporters write windows' biases, masks and assignments to a slice with lists of coordinates. NNAPI
takes rows only; where the coordinates are constants, so are the numbers of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.rewriter import GraphRewriter

_PLAIN_RANK = 4
"""Of more axes a gather is taken apart better than a reshape, but of truth values there is none."""

Rule = Callable[[GraphRewriter, relax.Call], "relax.Expr | None"]
Rows = NDArray[np.int64]
Indices = NDArray[Any]


def _numbers_of(shape: tuple[int, ...], coordinates: Indices) -> Rows | None:
    """Rows that coordinates (their last axis) mean; None where one is outside."""
    depth = coordinates.shape[-1]
    sizes = np.array(shape[:depth], np.int64)
    if ((coordinates < -sizes) | (coordinates >= sizes)).any():
        return None
    inside = np.moveaxis(coordinates.astype(np.int64) % np.maximum(sizes, 1), -1, 0)
    rows: Rows = np.ravel_multi_index(tuple(inside), shape[:depth]).astype(np.int64)
    return rows


def _positions(shape: tuple[int, ...], indices: Indices, axis: int) -> Rows | None:
    """Elements that indices along one axis mean."""
    grid = np.indices(indices.shape)
    grid[axis] = indices
    return _numbers_of(shape, np.moveaxis(grid, 0, -1))


def _taken(
    rewriter: GraphRewriter, matrix: relax.Expr, rows: Rows, shape: tuple[int, ...]
) -> relax.Expr:
    flat = rows.reshape(-1)
    height = (static_shape(matrix) or (0,))[0]
    if not np.array_equal(flat, np.arange(height)):
        index = relax.const(flat.astype(np.int32))
        matrix = rewriter.emit(relax.op.take(matrix, index, 0))
    return rewriter.emit(relax.op.reshape(matrix, shape))


def _matrix(rewriter: GraphRewriter, data: relax.Expr, width: int) -> relax.Expr:
    """A tensor as rows of a width; of single elements where that is 1."""
    size = math.prod(static_shape(data) or ())
    shape = (size // max(width, 1), width) if width != 1 else (size,)
    return rewriter.emit(relax.op.reshape(rewriter.new(data), shape))


def _gather_nd(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    shape, result = static_shape(call.args[0]), static_shape(call)
    coordinates = constant_value(call.args[1])
    if shape is None or result is None or coordinates is None or int(call.attrs.batch_dims):
        return None
    rows = _numbers_of(shape, coordinates)
    if rows is None:
        return None
    width = math.prod(shape[coordinates.shape[-1] :])
    return _taken(rewriter, _matrix(rewriter, call.args[0], width), rows, result)


def _gather_elements(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    shape, result = static_shape(call.args[0]), static_shape(call)
    indices = constant_value(call.args[1])
    if shape is None or result is None or indices is None:
        return None
    positions = _positions(shape, indices, int(call.attrs.axis) % len(shape))
    if positions is None:
        return None
    return _taken(rewriter, _matrix(rewriter, call.args[0], 1), positions, result)


def _scattered(
    rewriter: GraphRewriter, call: relax.Call, rows: Rows | None, width: int
) -> relax.Expr | None:
    """Old rows and new ones below each other, the right one of them taken for each."""
    shape = static_shape(call)
    if rows is None or shape is None or static_shape(call.args[2]) is None:
        return None
    if call.attrs.reduction != "update":
        return None
    height = math.prod(shape) // max(width, 1)
    wanted = np.arange(height, dtype=np.int64)
    wanted[rows.reshape(-1)] = height + np.arange(rows.size)  # of several, the last
    parts = [_matrix(rewriter, call.args[at], width) for at in (0, 2)]
    both = rewriter.emit(relax.op.concat(parts, 0))
    return _taken(rewriter, both, wanted, shape)


def _scatter_nd(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    shape, coordinates = static_shape(call.args[0]), constant_value(call.args[1])
    if shape is None or coordinates is None:
        return None
    width = math.prod(shape[coordinates.shape[-1] :])
    return _scattered(rewriter, call, _numbers_of(shape, coordinates), width)


def _scatter_elements(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    shape, indices = static_shape(call.args[0]), constant_value(call.args[1])
    if shape is None or indices is None:
        return None
    positions = _positions(shape, indices, int(call.attrs.axis) % len(shape))
    return _scattered(rewriter, call, positions, 1)


def _take(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """All of an axis in order as a reshape, and positions from the end as those from the start.

    Kernels and NNAPI would read before the tensor.
    """
    shape, target = static_shape(call.args[0]), static_shape(call)
    indices: Indices | None = constant_value(call.args[1])
    if shape is None or target is None or indices is None:
        return None
    axis = call.attrs.axis
    length = math.prod(shape) if axis is None else shape[int(axis)]
    if (indices < -length).any() or (indices >= length).any():
        return None
    source = rewriter.new(call.args[0])
    whole = np.where(indices < 0, indices + length, indices)
    is_all = np.array_equal(whole.reshape(-1), np.arange(length))
    if is_all and (len(target) <= max(len(shape), _PLAIN_RANK) or dtype_of(call) == "bool"):
        return rewriter.emit(relax.op.reshape(source, target))
    if not (indices < 0).any():
        return None
    inside = relax.const(whole.astype(indices.dtype), indices.dtype.name)
    return rewriter.emit(relax.Call(call.op, [source, inside], call.attrs, call.ty_args))


GATHERS: Mapping[str, Rule] = {
    "relax.gather_elements": _gather_elements,
    "relax.gather_nd": _gather_nd,
    "relax.scatter_elements": _scatter_elements,
    "relax.scatter_nd": _scatter_nd,
    "relax.take": _take,
}
"""By Relax operator."""
