"""Sums of products of integers, and the step from real numbers to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax, te, tirx

from workers.backends.cpu.operators.convolution import convolution_of
from workers.backends.cpu.operators.groups import join_groups
from workers.backends.cpu.operators.matmul import dense_of
from workers.backends.cpu.operators.packed import INTEGER_DTYPE, IS_ELEMENTWISE, Element
from workers.backends.cpu.vectors import DotProduct, Vectors
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.quantization import quantization_of


def integer_sum(
    builder: relax.BlockBuilder,
    call: relax.Call,
    operands: tuple[relax.Expr, relax.Expr],
    zero_point: int,
    vectors: Vectors,
) -> relax.Expr | None:
    """The int32 sum that stands in a float convolution's or matmul's place.

    Args:
        builder: of the function.
        call: the float operator.
        operands: bytes, and constant weights less their zero point.
        zero_point: of the bytes.
        vectors: of the target.
    """
    data, weight = operands[0], constant_value(operands[1])
    if weight is None:
        return None
    channels = weight.shape[-1]
    is_matmul = call.op.name == "relax.matmul"
    groups = 1 if is_matmul else int(call.attrs.groups)
    if groups > 1:
        weight, groups = join_groups(weight, groups, vectors.lanes)
    dot = _dot_for(weight, groups, _has_rows(call), vectors)
    element = Element(INTEGER_DTYPE, dtype_of(data), zero_point, dot)
    if element.dot is not None:
        weight = weight.astype(element.dot.weight)
    if is_matmul:
        total = dense_of(builder, data, weight, (vectors, element))
    else:
        total = convolution_of(builder, call, (data, relax.const(weight)), (vectors, element))
    border = element.border
    if total is None or not border:
        return total
    # sum((x - border) * w) is sum(x * w) less a number of each output channel's own.
    surplus = border * weight.astype(np.int64).sum(axis=tuple(range(weight.ndim - 1)))
    # Groups of nothing may have been joined to the last ones.
    surplus = surplus[:channels]
    return relax.op.subtract(builder.emit(total), relax.const(surplus.astype(np.int32)))


def _has_rows(call: relax.Call) -> bool:
    """Whether neighbouring rows of the result are computed of neighbouring rows of the data."""
    shape = static_shape(call) or ()
    if call.op.name == "relax.matmul":
        return len(shape) > 1 and shape[-2] > 1
    return shape[2] > 1 and int(call.attrs.strides[1]) == 1


def _dot_for(
    weight: NDArray[Any], groups: int, has_rows: bool, vectors: Vectors
) -> DotProduct | None:
    """The fastest instruction that takes these weights.

    None for a depthwise convolution, which sums nothing along the depth, and for groups that a
    dot product would cross.
    """
    if groups > 1 and weight.shape[-2] == 1:
        return None
    for dot in vectors.dots:
        limits = np.iinfo(dot.weight)
        fits = limits.min <= weight.min() and weight.max() <= limits.max
        fits = fits and (dot.rows == 1 or (has_rows and groups == 1))
        if fits and (groups == 1 or weight.shape[-2] % dot.terms == 0):
            return dot
    return None


_INTEGERS_ONLY = 1.5 * 2.0**23
"""Numbers within 2^22 of it have no fraction in float32; those here are within 2^8."""

_BITS = int(np.float32(_INTEGERS_ONLY).view(np.int32))


def quantize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    """Nearest integers, ties to even.

    TVM rounds by a call for every element, and makes no vectors of nearbyint.
    """
    numbers, shape = quantization_of(call), static_shape(call)
    if numbers is None or shape is None or dtype_of(call.args[0]) != "float32":
        return None
    if numbers.dtype not in ("int8", "uint8") or not numbers.is_per_tensor:
        return None
    limits = np.iinfo(numbers.dtype)

    def compute(x: te.Tensor, scale: te.Tensor, zero: te.Tensor) -> te.Tensor:
        def term(*at: te.Var) -> te.PrimExpr:
            low, high = (tirx.const(float(limit)) - zero[0] for limit in (limits.min, limits.max))
            bounded = te.max(te.min(x[at] / scale[0], high), low)
            # What a float32 of this size cannot hold is rounded away, ties to even. The rest is
            # read from its bits: TVM knows that x + c - c is x.
            bits = tirx.reinterpret("int32", bounded + tirx.const(_INTEGERS_ONLY))
            nearest = bits - tirx.const(_BITS) + zero[0].astype("int32")
            return nearest.astype(numbers.dtype)

        return te.compute(shape, term, name="quantize")

    # Arguments and not numbers in the code: layers of one shape then share one kernel.
    parameters = [
        relax.const(np.array([value], np.float32)) for value in (numbers.scale, numbers.zero_point)
    ]
    return builder.call_te(
        compute,
        call.args[0],
        *parameters,
        primfunc_name_hint="quantize",
        primfunc_attrs=IS_ELEMENTWISE,
    )
