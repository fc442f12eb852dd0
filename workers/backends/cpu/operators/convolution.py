"""conv2d in NHWC with constant weights: dense, grouped, depthwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax, te

from workers.backends.cpu.operators.groups import join_groups
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
from workers.backends.cpu.operators.window import Window
from workers.backends.cpu.operators.winograd import results_of, winograd
from workers.backends.cpu.tiles import Tile, choose_tile
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, static_shape


def convolution(
    builder: relax.BlockBuilder, call: relax.Call, vectors: Vectors
) -> relax.Expr | None:
    """Lowers a convolution that the layout pass has put into NHWC."""
    element = float_element(call)
    if element is None:
        return None
    return convolution_of(builder, call, tuple(call.args), (vectors, element))


def convolution_of(
    builder: relax.BlockBuilder,
    call: relax.Call,
    operands: tuple[relax.Expr, relax.Expr],
    machine: tuple[Vectors, Element],
) -> relax.Expr | None:
    """The convolution `call` over other operands of the same shapes.

    Args:
        builder: of the function.
        call: tells the window.
        operands: image, and constant weights; their depth tells the groups.
        machine: registers of the target, and what is summed.

    Returns:
        None where the layout is another one.
    """
    attrs, image, weight = call.attrs, static_shape(operands[0]), constant_value(operands[1])
    output = static_shape(call)
    is_ours = attrs.data_layout == "NHWC" and attrs.kernel_layout == "HWIO"
    if not is_ours or image is None or weight is None or output is None:
        return None
    vectors, element = machine[0].of(machine[1].dtype), machine[1]
    window, groups = Window.of(call), -(-image[3] // weight.shape[2])
    if not element.border:  # else what the border adds is part of the sum
        window, weight = window.trimmed(weight, (image[1], image[2]))
    if groups == image[3] == output[3] and groups > 1:
        return _depthwise(builder, operands[0], weight[:, :, 0, :], window, element)
    steps = results_of(weight, window, image, vectors) if element is FLOAT else None
    if steps is not None:
        return winograd(builder, (operands[0], weight), window, steps, vectors)
    weight, groups = join_groups(weight, groups, vectors.lanes)
    plan = _plan(weight, window, groups, vectors, element)
    return _dense(builder, call, (operands[0], weight), window, plan, (vectors, element))


def _plan(
    weight: NDArray[Any], window: Window, groups: int, vectors: Vectors, element: Element
) -> tuple[Tile, bool, int]:
    """A tile, whether it runs over rows' ends, and the number of groups."""
    channels = weight.shape[3] // groups
    depth = math.prod(weight.shape[:2]) * -(-weight.shape[2] // element.terms)
    tile, is_flat = choose_tile(
        window.output[1:],
        channels,
        depth,
        vectors,
        may_be_flat=element.dot is None,
        step=element.rows,
    )
    if groups == 1:
        return tile, is_flat, groups
    # Groups are whole registers by now; a tile must not cross two.
    count = next(n for n in range(tile.vectors, 0, -1) if channels % (n * vectors.lanes) == 0)
    return Tile(tile.pixels, count, count * vectors.lanes), is_flat, groups


def _dense(
    builder: relax.BlockBuilder,
    call: relax.Call,
    operands: tuple[relax.Expr, NDArray[Any]],
    window: Window,
    plan: tuple[Tile, bool, int],
    machine: tuple[Vectors, Element],
) -> relax.Expr:
    (image, weight), (tile, is_flat, groups), (vectors, element) = operands, plan, machine
    packed = stored(pack_terms(weight, tile.channels, element.terms), vectors)
    terms = element.terms
    batch, height, width = window.output
    _, kernel_height, kernel_width, depth, lanes, _ = packed.shape
    channels, per_group = static_shape(call)[3], weight.shape[3] // groups  # type: ignore[index]
    columns = width if is_flat else round_up(width, tile.pixels)
    parts = count_of_parts(depth, kernel_height * kernel_width) if element is HALF else 1

    def compute(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        more = groups * depth * terms - int(x.shape[3])
        # Rows of a matrix are neighbours in memory: there is no last one to repeat.
        beyond = columns - width if element.rows > 1 else 0
        source = window.padded(element.widened(x), more, element.border, beyond)
        ky = te.reduce_axis((0, kernel_height), "ky")
        kx = te.reduce_axis((0, kernel_width), "kx")
        kc = te.reduce_axis((0, depth // parts), "kc")
        kd = te.reduce_axis((0, terms), "kd")

        def term(part: te.Var, *at: te.Var) -> te.PrimExpr:
            n, y, x, c = at
            # Columns of the last tile beyond the image repeat its last one and are not written.
            column = x if columns == width or beyond else te.min(x, width - 1)
            row, column = window.source(y, column, ky, kx)
            block = part * (depth // parts) + kc
            channel = block * terms + kd
            channel = channel if groups == 1 else c // per_group * depth * terms + channel
            factor = w[c // lanes, ky, kx, block, c % lanes, kd]
            value = element.product(source[n, row, column, channel], factor)
            return te.sum(value, axis=[ky, kx, kc, kd])

        shape = (batch, height, columns, packed.shape[0] * lanes)
        attrs = tile_annotations(tile, packed.nbytes, is_flat, element)
        if element is HALF:
            total = sums_in_parts(shape, term, parts, "conv2d", attrs)
        else:
            total = sums_of(shape, lambda *at: term(0, *at), element.rows, "conv2d", attrs)
        return te.compute(
            (batch, height, width, channels),
            lambda *at: total[place_of(at, element.rows)],
            name="conv2d_crop",
        )

    return builder.call_te(
        compute,
        image,
        relax.const(packed),
        primfunc_name_hint="conv2d",
        primfunc_attrs=FUSES_EPILOGUE,
    )


def _depthwise(
    builder: relax.BlockBuilder,
    image: relax.Expr,
    weight: NDArray[Any],
    window: Window,
    element: Element,
) -> relax.Expr:
    channels = weight.shape[2]
    more = -channels % 4
    packed = np.pad(weight, ((0, 0), (0, 0), (0, more)))

    def compute(x: te.Tensor, w: te.Tensor) -> te.Tensor:
        source = window.padded(element.widened(x), more)
        ky = te.reduce_axis((0, weight.shape[0]), "ky")
        kx = te.reduce_axis((0, weight.shape[1]), "kx")

        def term(n: te.Var, y: te.Var, x: te.Var, c: te.Var) -> te.PrimExpr:
            at = window.source(y, x, ky, kx)
            value = element.product(source[n, at[0], at[1], c], w[ky, kx, c])
            return te.sum(value, axis=[ky, kx])

        total = te.compute((*window.output, channels + more), term, name="depthwise")
        if not more:
            return total
        return te.compute((*window.output, channels), lambda *at: total[at], name="depthwise_crop")

    return builder.call_te(
        compute,
        image,
        relax.const(packed),
        primfunc_name_hint="depthwise",
        primfunc_attrs=FUSES_EPILOGUE,
    )
