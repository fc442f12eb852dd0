"""Spectra of sounds: the real Fourier transform as a product, complex numbers as two tensors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tvm import relax

from workers.frontends.tflite.emitter import Converter, Emitter

MAX_LENGTH = 2048
"""Of a transform: its matrices have as many rows, and half as many columns."""


def _rfft2d(op: Emitter) -> None:
    """Along the last axis; the axis before it has one row, as the importers of signals write it."""
    shape, (rows, length) = op.shape(0), op.integers(1)
    if rows != 1 or shape[-2] != 1:
        raise op.unsupported("transforms along two axes")
    if length > MAX_LENGTH:
        raise op.unsupported(f"transforms {length} numbers; {MAX_LENGTH} are taken")
    if shape[-1] < length:
        raise op.unsupported(f"transforms {length} numbers of {shape[-1]}")
    data, count = op.real(0), int(np.prod(shape[:-1]))
    last = len(shape) - 1
    data = op.emit(relax.op.strided_slice(data, [last], [0], [length]))
    data = op.emit(relax.op.reshape(data, (count, length)))
    bins = length // 2 + 1
    # Modulo the length, which loses nothing: angles of millions would lose their digits.
    turns = np.outer(np.arange(length), np.arange(bins)) % length
    angles = 2 * np.pi * turns / length
    parts = []
    for matrix in (np.cos(angles), -np.sin(angles)):
        part = op.emit(relax.op.matmul(data, relax.const(matrix.astype(np.float32))))
        parts.append(op.emit(relax.op.reshape(part, (*shape[:-1], bins))))
    op.give_complex(parts[0], parts[1])


def _complex_abs(op: Emitter) -> None:
    squares = [op.emit(relax.op.multiply(part, part)) for part in op.complex(0)]
    op.give(relax.op.sqrt(op.emit(relax.op.add(squares[0], squares[1]))))


def _part(index: int) -> Converter:
    return lambda op: op.give(op.complex(0)[index])


CONVERTERS: Mapping[str, Converter] = {
    "COMPLEX_ABS": _complex_abs,
    "IMAG": _part(1),
    "REAL": _part(0),
    "RFFT2D": _rfft2d,
}
"""By TFLite operator name."""

MOVING = frozenset({"EXPAND_DIMS", "RESHAPE", "SLICE", "SQUEEZE", "STRIDED_SLICE", "TRANSPOSE"})
"""Operators that do the same to both parts of complex numbers."""
