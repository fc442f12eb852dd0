"""Gathers at computed positions as rows taken from a matrix.

NNAPI's GATHER takes whole rows; which row an element or a coordinate is, integers of 32 bits tell.
"""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from workers.graph.graph import static_shape
from workers.graph.rewriter import GraphRewriter

_TYPE = "int32"


def elements_at(
    rewriter: GraphRewriter, data: relax.Expr, index: relax.Expr, axis: int
) -> relax.Expr:
    """ONNX's GatherElements: each position of the index, but on one axis where it says.

    Args:
        rewriter: of the graph both stand in.
        data: of any type and a known shape.
        index: int32, of the same rank, within the axis.
        axis: the one that the index counts.

    Returns:
        An expression of the index's shape, not bound.
    """
    shape, result = static_shape(data) or (), static_shape(index) or ()
    axis %= len(shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    grid = np.indices(result, np.int64)
    others = [i for i in range(len(shape)) if i != axis]
    base = sum((grid[i] * strides[i] for i in others), np.zeros(result, np.int64))
    place = index
    if strides[axis] != 1:
        step = relax.const(np.int32(strides[axis]), _TYPE)
        place = rewriter.emit(relax.op.multiply(place, step))
    if base.any():
        place = rewriter.emit(relax.op.add(place, relax.const(base.astype(_TYPE), _TYPE)))
    flat = rewriter.emit(relax.op.reshape(data, (math.prod(shape),)))
    return relax.op.take(flat, place, 0)


def rows_at(
    rewriter: GraphRewriter, data: relax.Expr, index: relax.Expr, result: tuple[int, ...]
) -> relax.Expr:
    """ONNX's GatherND without batch dimensions: what the coordinates in the last axis mean.

    Args:
        rewriter: of the graph both stand in.
        data: of any type and a known shape.
        index: int32; one outside of the tensor is an error of the model's input.
        result: shape.

    Returns:
        An expression of that shape, not bound.
    """
    shape, coordinates = static_shape(data) or (), static_shape(index) or ()
    depth = coordinates[-1]
    strides = [math.prod(shape[i + 1 : depth]) for i in range(depth)]
    # No change for an index that is inside; it says how small the numbers are.
    last = relax.const(np.array(shape[:depth], _TYPE) - np.int32(1), _TYPE)
    inside = rewriter.emit(relax.op.maximum(index, relax.const(np.int32(0), _TYPE)))
    inside = rewriter.emit(relax.op.minimum(inside, last))
    scaled = rewriter.emit(relax.op.multiply(inside, relax.const(np.array(strides, _TYPE), _TYPE)))
    rows = rewriter.emit(relax.op.sum(scaled, [-1], keepdims=len(coordinates) == 1))
    matrix = (math.prod(shape[:depth]), *shape[depth:])
    taken = rewriter.emit(relax.op.take(rewriter.emit(relax.op.reshape(data, matrix)), rows, 0))
    return relax.op.reshape(taken, result)
