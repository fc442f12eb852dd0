"""Operators that take and put elements by index."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter
from workers.graph.graph import dtype_of


def _gather(op: Emitter) -> None:
    axis, batches = int(op.option("axis", 0)), int(op.option("batchDims", 0))
    if not batches:
        known = op.constant(1)
        if known is not None and known.ndim == 0:
            _give_one(op, axis, int(known))
        else:
            op.give(relax.op.take(op.real(0), op.raw(1), axis=axis))
        return
    shape, wanted = op.shape(0), op.shape(1)
    axis, batches = axis % len(shape), batches % len(wanted)
    if axis != batches:
        raise op.unsupported("gathers along an axis that does not follow its batch dimensions")
    # Rows of all batches one after the other: the indexes of each batch begin where its rows do.
    count, kind = int(np.prod(shape[:batches])), op.tensor(1).dtype
    rows = op.emit(relax.op.reshape(op.real(0), (count * shape[axis], *shape[axis + 1 :])))
    starts = np.arange(count, dtype=kind).reshape(-1, 1) * np.array(shape[axis], kind)
    indexes = op.emit(relax.op.reshape(op.raw(1), (count, int(np.prod(wanted[batches:])))))
    places = op.emit(relax.op.add(indexes, relax.const(starts, kind)))
    places = op.emit(relax.op.reshape(places, (int(np.prod(wanted)),)))
    taken = op.emit(relax.op.take(rows, places, axis=0))
    op.give(relax.op.reshape(taken, (*wanted, *shape[axis + 1 :])))


def _give_one(op: Emitter, axis: int, index: int) -> None:
    """The part of the data at one index of an axis, without that axis."""
    shape = list(op.shape(0))
    length = shape.pop(axis)
    if not 0 <= index < length:
        raise op.unsupported(f"takes index {index} of an axis of {length}")
    part = op.emit(relax.op.strided_slice(op.real(0), [axis], [index], [index + 1]))
    op.give(relax.op.reshape(part, shape))


def _gather_nd(op: Emitter) -> None:
    indices = op.emit(relax.op.astype(op.raw(1), "int64"))  # Relax takes no others
    op.give(relax.op.gather_nd(op.real(0), indices))


def _scatter_nd(op: Emitter) -> None:
    """Updates put into zeros; those of one place are added up."""
    shape, known = op.integers(2), op.constant(0)
    indices = op.emit(relax.op.astype(op.raw(0), "int64"))  # Relax takes no others
    updates = op.real(1)
    zeros = relax.const(np.zeros(shape, dtype_of(updates)))
    rows = None if known is None else known.reshape(-1, known.shape[-1])
    is_distinct = rows is not None and len(np.unique(rows, axis=0)) == len(rows)
    reduction = "update" if is_distinct else "add"
    if rows is not None:
        indices = relax.const(np.asarray(known, np.int64))
    op.give(relax.op.scatter_nd(zeros, indices, updates, reduction))


def _reverse_sequence(op: Emitter) -> None:
    """The first elements of each batch backwards, as many as its length says."""
    data, lengths = op.real(0), op.raw(1)
    shape = op.shape_of(data)
    along, batch = int(op.option("seqDim", 0)), int(op.option("batchDim", 0))
    order = [batch, along, *(axis for axis in range(len(shape)) if axis not in (batch, along))]
    count, steps = shape[batch], shape[along]
    kind = dtype_of(lengths)
    times = relax.const(np.arange(steps, dtype=kind).reshape(1, steps))
    limits = op.emit(relax.op.reshape(lengths, (count, 1)))
    last = op.emit(relax.op.subtract(limits, relax.const(np.array(1, kind))))
    mirrored = op.emit(relax.op.subtract(last, times))
    is_inside = op.emit(relax.op.less(times, limits))
    places = op.emit(relax.op.where(is_inside, mirrored, times))
    starts = relax.const((np.arange(count, dtype=kind) * steps).astype(kind).reshape(count, 1))
    places = op.emit(relax.op.reshape(op.emit(relax.op.add(places, starts)), (count * steps,)))
    turned = op.emit(relax.op.permute_dims(data, order))
    rest = [shape[axis] for axis in order[2:]]
    rows = op.emit(relax.op.reshape(turned, (count * steps, *rest)))
    taken = op.emit(relax.op.take(rows, places, axis=0))
    whole = op.emit(relax.op.reshape(taken, (count, steps, *rest)))
    op.give(relax.op.permute_dims(whole, [order.index(axis) for axis in range(len(shape))]))


def _embedding_lookup(op: Emitter) -> None:
    op.give(relax.op.take(op.real(1), op.raw(0), axis=0))


def _dynamic_update_slice(op: Emitter) -> None:
    """A block of the data replaced, at a place that is known."""
    shape, size = op.shape(0), op.shape(1)
    starts = [
        min(max(begin, 0), length - taken)
        for begin, length, taken in zip(op.integers(2), shape, size, strict=True)
    ]
    partial = [axis for axis, length in enumerate(shape) if size[axis] != length]
    data, block = op.real(0), op.real(1)
    if len(partial) > 1:
        inside = np.zeros(shape, bool)
        inside[tuple(slice(b, b + n) for b, n in zip(starts, size, strict=True))] = True
        ends = [n - b - taken for n, b, taken in zip(shape, starts, size, strict=True)]
        widths = [width for pair in zip(starts, ends, strict=True) for width in pair]
        spread = op.emit(relax.op.nn.pad(block, widths))
        op.give(relax.op.where(relax.const(inside), spread, data))
        return
    parts = [block]
    for axis in partial:
        begin, end = starts[axis], starts[axis] + size[axis]
        if begin > 0:
            parts.insert(0, op.emit(relax.op.strided_slice(data, [axis], [0], [begin])))
        if end < shape[axis]:
            parts.append(op.emit(relax.op.strided_slice(data, [axis], [end], [shape[axis]])))
    op.give(relax.op.concat(parts, axis=partial[0]) if len(parts) > 1 else block)


def _matrix_diag(op: Emitter) -> None:
    """Vectors along the last axis as the diagonals of matrices, zeros elsewhere."""
    data, shape = op.real(0), op.shape(0)
    rows = op.emit(relax.op.reshape(data, (*shape[:-1], 1, shape[-1])))
    square = op.emit(relax.op.broadcast_to(rows, (*shape, shape[-1])))
    mask = np.broadcast_to(np.eye(shape[-1], dtype=bool), (*shape, shape[-1]))
    zeros = relax.const(np.zeros((*shape, shape[-1]), dtype_of(data)))
    op.give(relax.op.where(relax.const(np.ascontiguousarray(mask)), square, zeros))


def _segment_sum(op: Emitter) -> None:
    """Rows of one segment added up, as a product with zeros and ones: the segments are known."""
    segments, shape = op.needed(1).reshape(-1), op.shape(0)
    count = int(segments.max(initial=-1)) + 1
    if dtype_of(op.real(0)) != "float32":
        raise op.unsupported("adds integers")
    belongs = (np.arange(count)[:, None] == segments[None, :]).astype(np.float32)
    width = int(np.prod(shape[1:]))
    rows = op.emit(relax.op.reshape(op.real(0), (shape[0], width)))
    total = op.emit(relax.op.matmul(relax.const(belongs), rows))
    op.give(relax.op.reshape(total, (count, *shape[1:])))


CONVERTERS: Mapping[str, Converter] = {
    "DYNAMIC_UPDATE_SLICE": _dynamic_update_slice,
    "EMBEDDING_LOOKUP": _embedding_lookup,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "MATRIX_DIAG": _matrix_diag,
    "REVERSE_SEQUENCE": _reverse_sequence,
    "SCATTER_ND": _scatter_nd,
    "SEGMENT_SUM": _segment_sum,
}
"""By TFLite operator name."""
