"""matmul: by constant weights packed when compiling, or of two activations."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray
from tvm import relax, te, tirx, topi

from workers.backends.cpu.operators.half_sums import count_of_parts, sums_in_parts
from workers.backends.cpu.operators.packed import (
    FLOAT,
    FUSES_EPILOGUE,
    HALF,
    Element,
    float_element,
    pack_terms,
    round_up,
    stored,
    tile_annotations,
)
from workers.backends.cpu.operators.squares import place_of, sums_of
from workers.backends.cpu.tiles import choose_tile
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, static_shape


def matmul(builder: relax.BlockBuilder, call: relax.Call, vectors: Vectors) -> relax.Expr | None:
    """Lowers a matmul of floats of static shapes with at least two dimensions a side."""
    left, right = (static_shape(argument) for argument in call.args)
    if left is None or right is None or min(len(left), len(right)) < 2:
        return None
    element = float_element(call)
    if element is None:
        return None
    weight = constant_value(call.args[1])
    if weight is not None and weight.ndim == 2:
        return dense_of(builder, call.args[0], weight, (vectors, element))
    if element is not FLOAT or left[:-2] != right[:-2] or not right[:-2]:
        return None
    return _batched(builder, call, (left, right), vectors)


def dense_of(
    builder: relax.BlockBuilder,
    data: relax.Expr,
    weight: NDArray[Any],
    machine: tuple[Vectors, Element],
) -> relax.Expr | None:
    """A matmul by a constant matrix; None where the data's shape is not static."""
    vectors, element = machine[0].of(machine[1].dtype), machine[1]
    shape = static_shape(data)
    if shape is None or len(shape) < 2:
        return None
    *outer, rows, depth = shape
    # Rows of one are no rows: (tokens, 1, width) is a matrix, not a stack of vectors.
    units = 0
    while rows == 1 and outer:
        rows, units = outer.pop(), units + 1
    columns = weight.shape[1]
    terms = element.terms
    sums = -(-depth // terms)
    tile, _ = choose_tile((1, rows), columns, sums, vectors, step=element.rows)
    packed = stored(pack_terms(weight, tile.channels, terms), vectors)
    lanes, more = tile.channels, sums * terms - depth
    padded = round_up(rows, tile.pixels)
    parts = count_of_parts(sums, 1) if element is HALF else 1

    def compute(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        wide = element.widened(x)
        # Rows of a matrix are neighbours in memory: there is no last one to repeat.
        beyond = padded - rows if element.rows > 1 else 0
        if more or beyond:
            before, after = (0,) * len(shape), [0] * len(shape)
            after[-1], after[-2 - units] = more, beyond
            wide = topi.nn.pad(wide, before, after, tirx.const(0, wide.dtype), name="pad")
        k = te.reduce_axis((0, sums // parts), "k")
        kd = te.reduce_axis((0, terms), "kd")

        def term(part: te.Var, *at: te.Var) -> te.PrimExpr:
            *batch, row, column = at
            row = row if padded == rows or beyond else te.min(row, rows - 1)
            block = part * (sums // parts) + k
            factor = w[column // lanes, block, column % lanes, kd]
            source = (*batch, row, *(0,) * units, block * terms + kd)
            return te.sum(element.product(wide[source], factor), axis=[k, kd])

        attrs = tile_annotations(tile, packed.nbytes, is_flat=False, element=element)
        sizes = (*outer, padded, packed.shape[0] * lanes)
        if element is HALF:
            total = sums_in_parts(sizes, term, parts, "matmul", attrs)
        else:
            total = sums_of(sizes, lambda *at: term(0, *at), element.rows, "matmul", attrs)
        crop = (*shape[:-1], columns)
        rank = len(sizes) - 1

        def cropped(*at: te.Var) -> te.PrimExpr:
            return total[place_of((*at[:rank], at[-1]), element.rows)]

        return te.compute(crop, cropped, name="matmul_crop")

    return builder.call_te(
        compute,
        data,
        relax.const(packed),
        primfunc_name_hint="matmul",
        primfunc_attrs=FUSES_EPILOGUE,
    )


def _batched(
    builder: relax.BlockBuilder,
    call: relax.Call,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    vectors: Vectors,
) -> relax.Expr:
    (*outer, rows, depth), columns = shapes[0], shapes[1][-1]
    tile, _ = choose_tile((1, rows), columns, depth, vectors)
    lanes = tile.channels
    tiles = -(-columns // lanes)
    padded = round_up(rows, tile.pixels)

    def compute(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, depth), "k")

        def packed_term(*at: te.Var) -> te.PrimExpr:
            *batch, t, inner, lane = at
            column = t * lanes + lane
            if tiles * lanes == columns:
                return w[(*batch, inner, column)]
            return te.if_then_else(column < columns, w[(*batch, inner, column)], 0.0)

        packed = te.compute((*outer, tiles, depth, lanes), packed_term, name="matmul_pack")

        def term(*at: te.Var) -> te.PrimExpr:
            *batch, row, column = at
            row = row if padded == rows else te.min(row, rows - 1)
            value = packed[(*batch, column // lanes, k, column % lanes)]
            return te.sum(x[(*batch, row, k)] * value, axis=[k])

        weight_bytes = 4 * tiles * lanes * depth
        attrs = tile_annotations(tile, weight_bytes, is_flat=False)
        total = te.compute((*outer, padded, tiles * lanes), term, name="matmul", attrs=attrs)
        return te.compute((*outer, rows, columns), lambda *at: total[at], name="matmul_crop")

    return builder.call_te(
        compute,
        *call.args,
        primfunc_name_hint=f"batch_matmul_{math.prod(outer)}",
        primfunc_attrs=FUSES_EPILOGUE,
    )
