"""3 x 3 convolutions of stride one by Winograd's filtering: fewer products, three kernels.

Tiles of the image and the weights are transformed, multiplied point by point, which over all tiles
and channels is one matmul a point, and the sums are transformed back. The weights are transformed
when compiling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax, te, tirx, topi

from workers.backends.cpu.operators.cook_toom import WINDOW, transforms
from workers.backends.cpu.operators.packed import (
    FUSES_EPILOGUE,
    IS_OPAQUE,
    pack,
    round_up,
    tile_annotations,
)
from workers.backends.cpu.operators.window import Window
from workers.backends.cpu.schedules.register_tile import STACKED
from workers.backends.cpu.schedules.winograd import RESULT, STEP, TRANSFORM
from workers.backends.cpu.tiles import choose_tile
from workers.backends.cpu.vectors import Vectors

MAX_WEIGHT_BYTES = 4 << 20
"""Transformed weights are four times as large as plain ones. The limit is an estimate for
caches and package size; layers beyond it were not measured."""

TRANSFORM_COST = 18
"""Products that transforming one number, forth or back, takes the time of, memory included;
measured with AVX-512. Narrower vectors do both more slowly."""


def results_of(
    weight: NDArray[Any], window: Window, image: tuple[int, ...], vectors: Vectors
) -> int | None:
    """Results a step that make a convolution faster than summing it directly; None where none do.

    Args:
        weight: (height, width, depth, channels).
        window: of the convolution.
        image: NHWC shape of the input.
        vectors: of the target.
    """
    is_plain = weight.shape[:2] == (WINDOW, WINDOW) and weight.shape[2] == image[3]
    if not is_plain or window.strides != (1, 1) or window.dilation != (1, 1):
        return None
    if min(window.padding) < 0 or min(weight.shape[2:]) < vectors.lanes:
        return None
    batch, height, width = window.output
    depth, channels = weight.shape[2:]
    costs: dict[int | None, int] = {None: (batch * height * width * WINDOW**2 * depth * channels)}
    for results in (4, 2):
        size = results + WINDOW - 1
        numbers = size**2 * batch * -(-height // results) * -(-width // results)
        if size**2 * depth * channels * 4 <= MAX_WEIGHT_BYTES:
            moved = TRANSFORM_COST * sum(_filled(n, vectors.lanes) for n in (depth, channels))
            costs[results] = numbers * (depth * channels + moved)
    return min(costs, key=lambda results: costs[results])


def _filled(channels: int, lanes: int) -> int:
    """Lanes that transforms take for channels; only a common divisor of both is used."""
    return channels * (lanes // math.gcd(channels, lanes))


def winograd(
    builder: relax.BlockBuilder,
    operands: tuple[relax.Expr, NDArray[Any]],
    window: Window,
    results: int,
    vectors: Vectors,
) -> relax.Expr:
    """The convolution, its last kernel open to an epilogue.

    Args:
        builder: of the function.
        operands: NHWC image, and weights (3, 3, depth, channels).
        window: stride and dilation one.
        results: of `results_of`.
        vectors: of the target.
    """
    image, weight = operands
    batch, height, width = window.output
    grid = (batch, -(-height // results), -(-width // results))
    tiles, channels = math.prod(grid), weight.shape[3]
    g = transforms(results).window
    points = np.einsum("ik,klco,jl->ijco", g, weight.astype(np.float64), g)
    points = points.reshape(-1, *weight.shape[2:]).astype(np.float32)
    transformed = builder.emit_te(
        lambda x: _image(x, window, grid, results),
        image,
        primfunc_name_hint="winograd_image",
        primfunc_attrs=IS_OPAQUE,
    )
    tile, _ = choose_tile((1, tiles), channels, weight.shape[2], vectors)
    packed = np.stack([pack(point, tile.channels) for point in points])

    def product(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        count, lanes = packed.shape[1], packed.shape[3]
        k = te.reduce_axis((0, weight.shape[2]), "k")
        rows = round_up(tiles, tile.pixels)

        def term(i: te.Var, p: te.Var, c: te.Var) -> te.PrimExpr:
            row = p if rows == tiles else te.min(p, tiles - 1)
            return te.sum(x[row, i, k] * w[i, c // lanes, k, c % lanes], axis=[k])

        attrs = tile_annotations(tile, packed.nbytes // len(points), is_flat=False)
        attrs |= {STACKED: 1}
        total = te.compute((len(points), rows, count * lanes), term, name="product", attrs=attrs)
        shape = (tiles, len(points), channels)
        return te.compute(shape, lambda p, i, c: total[i, p, c], name="product_crop")

    sums = builder.emit_te(
        product,
        transformed,
        relax.const(packed),
        primfunc_name_hint="winograd_product",
        primfunc_attrs=IS_OPAQUE,
    )
    return builder.call_te(
        lambda x: _result(x, window, grid, results),
        sums,
        primfunc_name_hint="winograd_result",
        primfunc_attrs=FUSES_EPILOGUE,
    )


def _image(image: te.Tensor, window: Window, grid: tuple[int, int, int], results: int) -> te.Tensor:
    """(tiles, points, channels): B^T d B of every tile d."""
    matrix = transforms(results).image
    size, channels = len(matrix), int(image.shape[3])
    batch, rows, columns = grid
    top, left = window.padding[:2]
    after = [
        max(count * results + WINDOW - 1 - before - int(image.shape[1 + axis]), 0)
        for axis, (count, before) in enumerate(((rows, top), (columns, left)))
    ]
    padded = topi.nn.pad(image, (0, top, left, 0), (0, *after, 0), name="pad")

    def half(n: te.Var, y: te.Var, x: te.Var, i: te.Var, k: te.Var, c: te.Var) -> te.PrimExpr:
        column = [padded[n, y * results + j, x * results + k, c] for j in range(size)]
        return _row(matrix, i, column)

    shape = (batch, rows, columns, size, size, channels)
    halves = te.compute(shape, half, name="winograd_half")

    def whole(p: te.Var, i: te.Var, c: te.Var) -> te.PrimExpr:
        at = (p // (rows * columns), p // columns % rows, p % columns, i // size)
        return _row(matrix, i % size, [halves[(*at, k, c)] for k in range(size)])

    tiles = batch * rows * columns
    return te.compute(
        (tiles, size**2, channels), whole, name="winograd_image", attrs={TRANSFORM: size}
    )


def _result(sums: te.Tensor, window: Window, grid: tuple[int, int, int], results: int) -> te.Tensor:
    """NHWC output: A^T m A of every tile m."""
    matrix = transforms(results).result
    size, channels = matrix.shape[1], int(sums.shape[2])
    batch, rows, columns = grid

    def half(n: te.Var, y: te.Var, x: te.Var, i: te.Var, k: te.Var, c: te.Var) -> te.PrimExpr:
        tile = (n * rows + y) * columns + x
        return _row(matrix, i, [sums[tile, j * size + k, c] for j in range(size)])

    shape = (batch, rows, columns, results, size, channels)
    halves = te.compute(shape, half, name="winograd_half")

    def whole(n: te.Var, y: te.Var, x: te.Var, c: te.Var) -> te.PrimExpr:
        at = (n, y // results, x // results, y % results)
        return _row(matrix, x % results, [halves[(*at, k, c)] for k in range(size)])

    attrs = {RESULT: 1, STEP: results}
    return te.compute((*window.output, channels), whole, name="winograd_result", attrs=attrs)


def _row(
    matrix: NDArray[np.float64], index: te.PrimExpr, values: Sequence[te.PrimExpr]
) -> te.PrimExpr:
    """Row `index` of `matrix` times `values`; a plain sum once the loop of `index` is unrolled."""
    rows = [_combined(row, values) for row in matrix]
    chosen = rows[-1]
    for number, row in reversed(list(enumerate(rows[:-1]))):
        chosen = tirx.if_then_else(tirx.EQ(index, number), row, chosen)
    return chosen


def _combined(row: NDArray[np.float64], values: Sequence[te.PrimExpr]) -> te.PrimExpr:
    terms = [
        value if factor == 1 else value * tirx.const(float(factor), "float32")
        for factor, value in zip(row, values, strict=True)
        if factor
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
