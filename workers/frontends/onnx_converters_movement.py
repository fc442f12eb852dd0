"""ONNX operations that move elements, and Einsum, which is a product between movements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax

from workers.frontends.onnx_operands import (
    Converter,
    Inputs,
    Scope,
    constant,
    operand,
    real_constant,
    text,
)
from workers.graph.graph import dtype_of, static_shape

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


def _pad(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    pads, shape = constant(inputs, 1), static_shape(inputs[0])
    mode = _PAD_MODES.get(text(attrs, "mode", "constant"))
    fill = real_constant(inputs, 2)
    if mode is None or pads is None or shape is None:
        return None
    if operand(inputs, 2) is not None and fill is None:
        return None
    axes = constant(inputs, 3)
    chosen = range(len(shape)) if axes is None else [int(a) % len(shape) for a in axes]
    widths = np.zeros((len(shape), 2), np.int64)
    for position, axis in enumerate(chosen):
        widths[axis] = pads[position], pads[position + len(pads) // 2]
    data = inputs[0]
    if (widths < 0).any():  # what is taken away, first
        begins = [-min(int(before), 0) for before, _ in widths]
        ends = [n + min(int(after), 0) for n, (_, after) in zip(shape, widths, strict=True)]
        data = scope.emit(relax.op.strided_slice(data, list(range(len(shape))), begins, ends))
        widths = np.maximum(widths, 0)
    value = 0.0 if fill is None else float(fill.reshape(-1)[0])
    return relax.op.nn.pad(data, [int(w) for w in widths.reshape(-1)], mode, value)


def _tile(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    del attrs, scope
    repeats = constant(inputs, 1)
    return None if repeats is None else relax.op.tile(inputs[0], [int(r) for r in repeats])


def _one_hot(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    depth, values = constant(inputs, 1), constant(inputs, 2)
    if depth is None or values is None:
        return None
    count = int(depth.reshape(-1)[0])
    indices = scope.emit(relax.op.astype(inputs[0], "int64"))
    # Negative indices count from the end, once; others outside light nothing.
    from_end = scope.emit(relax.op.add(indices, relax.const(count, "int64")))
    is_negative = scope.emit(relax.op.less(indices, relax.const(0, "int64")))
    whole = scope.emit(relax.op.where(is_negative, from_end, indices))
    off, on = (v.item() for v in values.reshape(-1))
    axis = int(attrs.get("axis", -1)) % (len(static_shape(inputs[0]) or ()) + 1)
    hot = scope.emit(relax.op.one_hot(whole, on, off, count, axis))
    return relax.op.astype(hot, values.dtype.name)


def einsum(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Two operands: axes in order batch, own, shared; one matrix product; axes back in order."""
    equation = text(attrs, "equation", "").replace(" ", "")
    terms, _, result = equation.partition("->")
    names = terms.split(",")
    shapes = [static_shape(data) for data in inputs]
    is_plain = "->" in equation and "." not in equation and len(names) == 2
    if not is_plain or any(len(set(name)) != len(name) for name in names):
        return None
    if any(shape is None for shape in shapes):
        return None
    left, right = names
    sizes: dict[str, int] = {}
    for name, shape in zip(names, shapes, strict=True):
        sizes.update(zip(name, shape or (), strict=True))
    if set(left) - set(right) - set(result) or set(right) - set(left) - set(result):
        return None  # an axis that is summed in one operand alone
    batch = "".join(axis for axis in left if axis in right and axis in result)
    shared = "".join(axis for axis in left if axis in right and axis not in result)
    own = "".join(axis for axis in left if axis not in right)
    other = "".join(axis for axis in right if axis not in left)
    product = relax.op.matmul(
        _ordered(inputs[0], left, batch, (own, shared), sizes, scope),
        _ordered(inputs[1], right, batch, (shared, other), sizes, scope),
    )
    made = batch + own + other
    whole = scope.emit(product)
    if len(own) != 1 or len(other) != 1:
        whole = scope.emit(relax.op.reshape(whole, [sizes[axis] for axis in made]))
    if made == result:
        return whole
    return relax.op.permute_dims(whole, [made.index(axis) for axis in result])


def _ordered(
    data: relax.Expr | None,
    axes: str,
    batch: str,
    groups: Sequence[str],
    sizes: Mapping[str, int],
    scope: Scope,
) -> relax.Expr:
    """An operand as a stack of matrices, each group of axes one side of them."""
    wanted = batch + "".join(groups)
    value = data
    if wanted != axes:
        value = scope.emit(relax.op.permute_dims(value, [axes.index(axis) for axis in wanted]))
    if all(len(group) == 1 for group in groups):
        return value
    sides = [math.prod(sizes[axis] for axis in group) for group in groups]
    return scope.emit(relax.op.reshape(value, [*(sizes[axis] for axis in batch), *sides]))


def _space_to_depth(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Mode CRD: pixels of a block beside each other, for each channel."""
    shape, block = static_shape(inputs[0]), int(attrs["blocksize"])
    if shape is None or text(attrs, "mode", "DCR") != "CRD":
        return None
    batch, channels, rows, columns = shape
    apart = (batch, channels, rows // block, block, columns // block, block)
    pixels = scope.emit(relax.op.reshape(inputs[0], apart))
    moved = scope.emit(relax.op.permute_dims(pixels, [0, 1, 3, 5, 2, 4]))
    return relax.op.reshape(moved, (batch, -1, rows // block, columns // block))


def _col2im(inputs: Inputs, attrs: dict[str, Any], scope: Scope) -> relax.Expr | None:
    """Windows added where they overlap: a transposed convolution with one weight an element."""
    shape, image, window = static_shape(inputs[0]), constant(inputs, 1), constant(inputs, 2)
    if shape is None or image is None or window is None or image.size != 2:
        raise ValueError("only windows of images, whose sizes are constants")
    size, kernel = [int(n) for n in image], [int(n) for n in window]
    strides = list(attrs.get("strides", (1, 1)))
    dilations, pads = list(attrs.get("dilations", (1, 1))), list(attrs.get("pads", (0,) * 4))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    counts = [(size[i] + pads[i] + pads[i + 2] - reach[i]) // strides[i] + 1 for i in range(2)]
    rest = [
        size[i] - ((counts[i] - 1) * strides[i] + reach[i] - pads[i] - pads[i + 2])
        for i in range(2)
    ]
    # Each channel is an image of its own: the same weights serve all.
    elements = math.prod(kernel)
    images = shape[0] * (shape[1] // elements)
    data = scope.emit(relax.op.reshape(inputs[0], (images, elements, *counts)))
    ones = np.eye(elements, dtype=dtype_of(inputs[0])).reshape(elements, 1, *kernel)
    added = relax.op.nn.conv2d_transpose(
        data, relax.const(ones), strides=strides, padding=pads, output_padding=rest,
        dilation=dilations,
    )  # fmt: skip
    return relax.op.reshape(scope.emit(added), (shape[0], shape[1] // elements, *size))


CONVERTERS: dict[str, Converter] = {
    "Col2Im": _col2im,
    "Einsum": einsum,
    "OneHot": _one_hot,
    "Pad": _pad,
    "SpaceToDepth": _space_to_depth,
    "Tile": _tile,
}
"""By ONNX operation name."""
