"""Operators that move elements: shapes, padding, blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter


def _reshape(op: Emitter) -> None:
    if op.has(1) and op.constant(1) is not None:
        wanted = op.integers(1)
    else:
        stated = op.option("newShape", None)
        wanted = [int(d) for d in stated] if stated is not None else list(op.output().shape)
    op.give(relax.op.reshape(op.real(0), wanted))


def _to_stated_shape(op: Emitter) -> None:
    """SQUEEZE and EXPAND_DIMS: the file states the result's shape."""
    op.give(relax.op.reshape(op.real(0), op.output().shape))


def _transpose(op: Emitter) -> None:
    op.give(relax.op.permute_dims(op.real(0), op.integers(1)))


def _concatenation(op: Emitter) -> None:
    parts = [op.real(position) for position in range(len(op.operator.inputs))]
    # Unrolled loops put rows between the empty begin and the rest of a tensor.
    filled = [part for part in parts if 0 not in op.shape_of(part)] or parts[:1]
    axis = int(op.option("axis", 0))
    joined = relax.op.concat(filled, axis=axis) if len(filled) > 1 else filled[0]
    op.give(op.activated(op.emit(joined)))


def _pack(op: Emitter) -> None:
    axis = int(op.option("axis", 0))
    parts = [
        op.emit(relax.op.expand_dims(op.real(position), axis))
        for position in range(len(op.operator.inputs))
    ]
    op.give(relax.op.concat(parts, axis=axis))


def _pad(op: Emitter) -> None:
    # Where nothing is said, the padding is a real zero: the zero point of a quantized tensor.
    fill = 0.0
    if op.has(2):
        fill = float(op.needed(2).reshape(-1)[0])
        numbers = op.tensor(2).quantization
        if numbers is not None:
            fill = (fill - numbers.zero_point) * numbers.scale
    op.give(relax.op.nn.pad(op.real(0), op.integers(1), "constant", fill))


def _mirror_pad(op: Emitter) -> None:
    if op.option("mode", 0) == 0:
        op.give(relax.op.nn.pad(op.real(0), op.integers(1), "reflect"))
        return
    # Relax has no symmetric padding: the part beyond each edge is read backwards.
    value = op.real(0)
    for axis, (before, after) in enumerate(op.needed(1).reshape(-1, 2).tolist()):
        length = op.shape_of(value)[axis]
        parts = [value]
        if before:
            parts.insert(0, _reversed_part(op, value, axis, 0, before))
        if after:
            parts.append(_reversed_part(op, value, axis, length - after, length))
        if len(parts) > 1:
            value = op.emit(relax.op.concat(parts, axis=axis))
    op.give(value)


def _reversed_part(op: Emitter, value: relax.Expr, axis: int, begin: int, end: int) -> relax.Expr:
    part = op.emit(relax.op.strided_slice(value, [axis], [begin], [end]))
    return op.emit(relax.op.flip(part, axis))


def _reverse(op: Emitter) -> None:
    value = op.real(0)
    for axis in op.integers(1):
        value = op.emit(relax.op.flip(value, axis))
    op.give(value)


def _tile(op: Emitter) -> None:
    op.give(relax.op.tile(op.real(0), op.integers(1)))


def _broadcast_to(op: Emitter) -> None:
    op.give(relax.op.broadcast_to(op.real(0), op.integers(1)))


def _depth_to_space(op: Emitter) -> None:
    n, h, w, c = op.shape(0)
    block = int(op.option("blockSize", 1))
    depth = c // (block * block)
    value = op.emit(relax.op.reshape(op.real(0), (n, h, w, block, block, depth)))
    value = op.emit(relax.op.permute_dims(value, (0, 1, 3, 2, 4, 5)))
    op.give(relax.op.reshape(value, (n, h * block, w * block, depth)))


def _space_to_depth(op: Emitter) -> None:
    n, h, w, c = op.shape(0)
    block = int(op.option("blockSize", 1))
    value = op.emit(relax.op.reshape(op.real(0), (n, h // block, block, w // block, block, c)))
    value = op.emit(relax.op.permute_dims(value, (0, 1, 3, 2, 4, 5)))
    op.give(relax.op.reshape(value, (n, h // block, w // block, c * block * block)))


def _space_to_batch(op: Emitter) -> None:
    blocks, pads = op.integers(1), op.integers(2)
    rest = len(op.shape(0)) - 1 - len(blocks)
    padded = op.emit(relax.op.nn.pad(op.real(0), [0, 0, *pads, *[0, 0] * rest], "constant", 0.0))
    batch, *shape = op.shape_of(padded)
    inner, outer = shape[: len(blocks)], shape[len(blocks) :]
    parts = [d for n, b in zip(inner, blocks, strict=True) for d in (n // b, b)]
    value = op.emit(relax.op.reshape(padded, (batch, *parts, *outer)))
    steps, within = range(1, len(parts) + 1, 2), range(2, len(parts) + 1, 2)
    tail = range(len(parts) + 1, len(parts) + 1 + rest)
    value = op.emit(relax.op.permute_dims(value, (*within, 0, *steps, *tail)))
    small = [n // b for n, b in zip(inner, blocks, strict=True)]
    op.give(relax.op.reshape(value, (batch * int(np.prod(blocks)), *small, *outer)))


def _batch_to_space(op: Emitter) -> None:
    blocks, crops = op.integers(1), op.needed(2).reshape(-1, 2).tolist()
    total, *shape = op.shape(0)
    count = len(blocks)
    inner, outer = shape[:count], shape[count:]
    batch = total // int(np.prod(blocks))
    value = op.emit(relax.op.reshape(op.real(0), (*blocks, batch, *inner, *outer)))
    mixed = [axis for i in range(count) for axis in (count + 1 + i, i)]
    tail = range(2 * count + 1, 2 * count + 1 + len(outer))
    value = op.emit(relax.op.permute_dims(value, (count, *mixed, *tail)))
    large = [n * b for n, b in zip(inner, blocks, strict=True)]
    value = op.emit(relax.op.reshape(value, (batch, *large, *outer)))
    ends = [n - crop[1] for n, crop in zip(large, crops, strict=True)]
    axes = list(range(1, count + 1))
    op.give(relax.op.strided_slice(value, axes, [crop[0] for crop in crops], ends))


CONVERTERS: Mapping[str, Converter] = {
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BROADCAST_TO": _broadcast_to,
    "CONCATENATION": _concatenation,
    "DEPTH_TO_SPACE": _depth_to_space,
    "EXPAND_DIMS": _to_stated_shape,
    "MIRROR_PAD": _mirror_pad,
    "PACK": _pack,
    "PAD": _pad,
    "PADV2": _pad,
    "RESHAPE": _reshape,
    "REVERSE_V2": _reverse,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SQUEEZE": _to_stated_shape,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
}
"""By TFLite operator name."""
