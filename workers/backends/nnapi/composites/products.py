"""Products of matrices of any rank, as BATCH_MATMUL or FULLY_CONNECTED has them.

BATCH_MATMUL (feature level 6) takes stacks of equal length; FULLY_CONNECTED one matrix, which the
older levels let be computed like any other operand (conformance example
fully_connected_float_weights_as_inputs, level 1). So before level 6 a stack is one product an item,
and a long one the groups of a GROUPED_CONV_2D (level 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from tvm import relax

from workers.backends.nnapi.composites.rewrite import Composite, Place
from workers.backends.nnapi.opset import opset
from workers.graph.graph import constant_value, dtype_of, static_shape

MAX_PIECES = 64
"""Longest stack that is taken apart: each item costs two slices and a product."""

_MAX_RANK = 4

Shape = tuple[int, ...]


def _matmul(place: Place, call: relax.Call) -> relax.Expr | None:
    left, right = (static_shape(arg) for arg in call.args)
    target = static_shape(call)
    if left is None or right is None or target is None:
        return None
    if dtype_of(call) not in ("float32", "float16"):
        return None
    if _is_native(place, call, left, right):
        return None
    product = _Product(place, call, left, right)
    value = product.run()
    if value is None or static_shape(value) == target:
        return value
    return place.emit(relax.op.reshape(value, target))


def _is_native(place: Place, call: relax.Call, left: Shape, right: Shape) -> bool:
    is_weight = len(right) == 2 and place.real_constant(call.args[1]) is not None
    if is_weight:
        return 2 <= len(left) <= _MAX_RANK
    has_stacks = place.level >= opset()["BATCH_MATMUL"].level
    is_stack = 2 <= len(left) <= _MAX_RANK and len(left) == len(right)
    if place.real_constant(call.args[0]) is not None and len(left) == 2 and is_stack:
        return False  # the product turned around is a FULLY_CONNECTED of level 2
    return has_stacks and is_stack and left[:-2] == right[:-2]


class _Product:
    """One product; every operand is a stack of matrices [items, rows, columns] here."""

    def __init__(self, place: Place, call: relax.Call, left: Shape, right: Shape) -> None:
        self._place = place
        self._left, self._right = call.args
        self._is_vector = len(left) == 1
        left = (1, *left) if len(left) == 1 else left
        right = (*right, 1) if len(right) == 1 else right
        self._shapes = left, right
        self._batch = np.broadcast_shapes(left[:-2], right[:-2])
        self._has_stacks = place.level >= opset()["BATCH_MATMUL"].level

    def run(self) -> relax.Expr | None:
        left, right = self._shapes
        if math.prod(right[:-2]) == 1:
            return self._one_matrix()
        if math.prod(left[:-2]) == 1:
            return self._one_matrix_turned()
        if self._has_stacks:
            return self._stack()
        return self._pieces()

    def _shaped(self, value: relax.Expr, shape: Sequence[int]) -> relax.Expr:
        array = constant_value(value)
        if array is not None:
            return relax.const(np.ascontiguousarray(array.reshape(tuple(shape))))
        if static_shape(value) == tuple(shape):
            return value
        return self._place.emit(relax.op.reshape(value, list(shape)))

    def _turned(self, expr: relax.Expr, shape: Shape) -> relax.Expr:
        """An operand with its last two axes swapped, together with a transpose that makes it."""
        rank = len(shape)
        swap = [*range(rank - 2), rank - 1, rank - 2]
        array = self._place.real_constant(expr)
        if array is not None:
            turned = np.ascontiguousarray(array.reshape(shape).transpose(swap))
            return relax.const(turned.astype(dtype_of(expr)))
        call = self._place.producer(expr, "relax.permute_dims")
        is_plain = call is not None and call.attrs.axes is not None
        if call is None or not is_plain or static_shape(expr) != shape:
            value = self._shaped(self._place.new(expr), shape)
            if 1 in shape[-2:]:
                return self._shaped(value, [shape[a] for a in swap])
            return self._place.emit(relax.op.permute_dims(value, swap))
        axes = [int(a) % rank for a in call.attrs.axes]
        order = [axes[a] for a in swap]
        source = self._place.new(call.args[0])
        if order == sorted(order):
            return source
        return self._place.emit(relax.op.permute_dims(source, order))

    def _product(self, rows: relax.Expr, turned: relax.Expr) -> relax.Expr:
        """[m, k] times the transpose of [n, k]."""
        array = constant_value(turned)
        if array is not None:
            weight = relax.const(np.ascontiguousarray(array.transpose()))
        else:
            weight = self._place.emit(relax.op.permute_dims(turned, [1, 0]))
        # With a transpose in front that is left out.
        return self._place.emit(relax.op.matmul(rows, weight), self._right)

    def _one_matrix(self) -> relax.Expr:
        """All rows of the left stack times one matrix."""
        left, right = self._shapes
        rows = self._shaped(self._place.new(self._left), (math.prod(left[:-1]), left[-1]))
        if self._place.real_constant(self._right) is None and self._has_stacks:
            matrix = self._shaped(self._place.new(self._right), right[-2:])
            return self._place.emit(relax.op.matmul(rows, matrix))
        turned = self._shaped(self._turned(self._right, right), (right[-1], right[-2]))
        return self._product(rows, turned)

    def _one_matrix_turned(self) -> relax.Expr:
        """One matrix times each of a stack: turned around, all columns times one matrix."""
        left, right = self._shapes
        inner, columns = right[-2:]
        items = math.prod(right[:-2])
        stack = self._shaped(self._turned(self._right, right), (items * columns, inner))
        matrix = self._shaped(self._place.new(self._left), left[-2:])
        product = self._product(stack, matrix)
        apart = self._shaped(product, (items, columns, left[-2]))
        return self._place.emit(relax.op.permute_dims(apart, [0, 2, 1]))

    def _spread(self, value: relax.Expr, matrix: Sequence[int]) -> relax.Expr:
        """An operand as long a stack as the result."""
        whole = (*self._batch, *matrix)
        array = constant_value(value)
        if array is not None:
            return relax.const(np.ascontiguousarray(np.broadcast_to(array, whole)))
        if math.prod(static_shape(value) or ()) == math.prod(whole):
            return value
        return self._place.emit(relax.op.broadcast_to(value, list(whole)))

    def _stack(self) -> relax.Expr:
        left, right = self._shapes
        items = math.prod(self._batch)
        stacks = [
            self._shaped(
                self._spread(self._shaped(self._place.new(expr), shape), shape[-2:]),
                (items, *shape[-2:]),
            )
            for expr, shape in ((self._left, left), (self._right, right))
        ]
        return self._place.emit(relax.op.matmul(*stacks))

    def _pieces(self) -> relax.Expr | None:
        """One product an item of the stack; rows of neighbours stand below each other."""
        left, right = self._shapes
        items, (rows, inner), columns = math.prod(self._batch), left[-2:], right[-1]
        if items > MAX_PIECES:
            return self._groups(items, (rows, inner), columns)
        first = self._spread(self._shaped(self._place.new(self._left), left), (rows, inner))
        first = self._shaped(first, (items * rows, inner))
        second = self._spread(self._turned(self._right, right), (columns, inner))
        second = self._shaped(second, (items * columns, inner))
        results = [
            self._product(self._cut(first, item, rows), self._cut(second, item, columns))
            for item in range(items)
        ]
        return self._place.emit(relax.op.concat(results, 0))

    def _groups(self, items: int, matrix: tuple[int, int], columns: int) -> relax.Expr | None:
        """A group an item of the stack, its weights the right matrix."""
        if self._place.level < opset()["GROUPED_CONV_2D"].level:
            return None
        left, right = self._shapes
        (rows, inner), emit = matrix, self._place.emit
        first = self._spread(self._shaped(self._place.new(self._left), left), matrix)
        first = emit(relax.op.permute_dims(self._shaped(first, (items, *matrix)), (1, 0, 2)))
        second = self._spread(self._turned(self._right, right), (columns, inner))
        second = self._shaped(second, (items * columns, 1, 1, inner))
        product = relax.op.nn.conv2d(
            self._shaped(first, (1, rows, 1, items * inner)),
            emit(relax.op.permute_dims(second, (1, 2, 3, 0))),
            groups=items,
            data_layout="NHWC",
            kernel_layout="HWIO",
        )
        # With a transpose in front that is left out.
        apart = self._shaped(emit(product, self._right), (rows, items, columns))
        return emit(relax.op.permute_dims(apart, (1, 0, 2)))

    def _cut(self, value: relax.Expr, item: int, rows: int) -> relax.Expr:
        begin, end = item * rows, (item + 1) * rows
        array = constant_value(value)
        if array is not None:
            return relax.const(np.ascontiguousarray(array[begin:end]))
        return self._place.emit(relax.op.strided_slice(value, [0], [begin], [end], [1]))


COMPOSITES: Mapping[str, Composite] = {"relax.matmul": _matmul}
