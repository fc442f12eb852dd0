"""Sums of products of integers, and the step from real numbers to them."""

from __future__ import annotations

import numpy as np
from tvm import relax, te, tirx

from workers.backends.cpu.operators.convolution import convolution_of
from workers.backends.cpu.operators.matmul import dense_of
from workers.backends.cpu.operators.packed import INTEGER_DTYPE, IS_ELEMENTWISE, Element
from workers.backends.cpu.vectors import Vectors
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
        operands: bytes, and constant int16 weights less their zero point.
        zero_point: of the bytes.
        vectors: of the target.
    """
    machine = vectors, Element(INTEGER_DTYPE, zero_point)
    weight = constant_value(operands[1])
    if call.op.name != "relax.matmul":
        return convolution_of(builder, call, operands, machine)
    return None if weight is None else dense_of(builder, operands[0], weight, machine)


def quantize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr | None:
    """Nearest integers, ties to even; TVM's own lowering rounds by a call for every element."""
    numbers, shape = quantization_of(call), static_shape(call)
    if numbers is None or shape is None or dtype_of(call.args[0]) != "float32":
        return None
    if numbers.dtype not in ("int8", "uint8") or not numbers.is_per_tensor:
        return None
    limits = np.iinfo(numbers.dtype)

    def compute(x: te.Tensor, scale: te.Tensor, zero: te.Tensor) -> te.Tensor:
        def term(*at: te.Var) -> te.PrimExpr:
            steps = tirx.nearbyint(x[at] / scale[0]) + zero[0]
            bounded = te.max(te.min(steps, float(limits.max)), float(limits.min))
            # By way of int32: vectors have no direct conversion to bytes.
            return bounded.astype("int32").astype(numbers.dtype)

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
