"""Quantized convolutions and matmuls in integer arithmetic, and constants that are real numbers.

The graph comes in QDQ form. A sum of products of dequantized tensors is the same sum over their
integers times a constant: `scale_x * scale_w * sum((x - zero_x) * (w - zero_w))`. The sum is
exact in int32; what follows it (bias, activation, quantize) stays float and is fused into the
sum's epilogue. That is within one step of ONNX Runtime, which computes in the same way.
"""

from __future__ import annotations

import math

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import bound_values, rewritten
from workers.backends.cpu.operators.integer import integer_sum
from workers.backends.cpu.operators.packed import WIDE
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import constant_value, dtype_of, static_shape
from workers.graph.quantization import DEQUANTIZE, Quantization, quantization_of

MAX_TERMS = (2**31 - 1) // (255 * 255)
"""Terms whose sum is certain to fit int32."""


def use_integers(module: tvm.IRModule, vectors: Vectors) -> tvm.IRModule:
    """The module with integer sums where both sides are quantized, and no constant dequantize."""
    return rewritten(module, _Integers(module, vectors))


@mutator
class _Integers(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(self, module: tvm.IRModule, vectors: Vectors) -> None:
        super().__init__(module)
        self._vectors = vectors
        self._values = bound_values(module)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """PyExprMutator's name for it."""
        name = getattr(call.op, "name", "")
        result: relax.Expr | None = None
        if name == DEQUANTIZE:
            result = _folded(call)
        elif name == "relax.nn.conv2d" and call.attrs.data_layout == "NHWC":
            result = self._sum(call, math.prod((static_shape(call.args[1]) or (0,))[:3]))
        elif name == "relax.matmul" and len(static_shape(call.args[1]) or ()) == 2:
            result = self._sum(call, (static_shape(call.args[1]) or (0,))[0])
        return super().visit_call_(call) if result is None else result

    def _sum(self, call: relax.Call, terms: int) -> relax.Expr | None:
        data, weight = (self._dequantized(argument) for argument in call.args)
        if data is None or weight is None or not 0 < terms <= MAX_TERMS:
            return None
        weights, x, w = constant_value(weight[0]), data[1], weight[1]
        last = len(static_shape(call.args[1]) or ()) - 1
        if weights is None or not x.is_per_tensor or w.axis not in (None, last):
            return None
        zeros = np.array(w.zero_points, np.int32)
        integers = relax.const((weights.astype(np.int32) - zeros).astype(WIDE))
        operands = self.visit_expr(data[0]), integers
        total = integer_sum(self.builder_, call, operands, x.zero_point, self._vectors)
        if total is None:
            return None
        real = relax.op.astype(self.builder_.emit(total), "float32")
        scales = np.float32(x.scale) * np.array(w.scales, np.float32)
        return relax.op.multiply(self.builder_.emit(real), relax.const(scales))

    def _dequantized(self, expr: relax.Expr) -> tuple[relax.Expr, Quantization] | None:
        value = self._values.get(expr) if isinstance(expr, relax.Var) else None
        if not isinstance(value, relax.Call) or getattr(value.op, "name", "") != DEQUANTIZE:
            return None
        numbers = quantization_of(value)
        is_byte = numbers is not None and dtype_of(value.args[0]) in ("int8", "uint8")
        return (value.args[0], numbers) if is_byte and numbers is not None else None


def _folded(call: relax.Call) -> relax.Expr | None:
    array, numbers = constant_value(call.args[0]), quantization_of(call)
    if array is None or numbers is None:
        return None
    return relax.const(numbers.dequantize(array))
