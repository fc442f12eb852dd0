"""Quantized tensors that are only moved: their bytes move, and are no real numbers in between.

What moves keeps every number, so between a dequantize and a quantize call of the same scale and
zero point it does the same to the integers. NNAPI is told of the scales by those pairs; here they
would be arithmetic on every byte.
"""

from __future__ import annotations

from collections import Counter

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import bound_values, rewritten
from workers.graph.graph import free_vars
from workers.graph.quantization import (
    DEQUANTIZE,
    QUANTIZE,
    Quantization,
    quantization_of,
    quantize,
)

_MOVES = frozenset(
    f"relax.{name}"
    for name in ["reshape", "flatten", "squeeze", "expand_dims", "permute_dims", "strided_slice"]
)

_PICKS = "relax.nn.max_pool2d"
"""Its result is one of its operand's numbers, the same one before and after the scale."""


def move_bytes(module: tvm.IRModule) -> tvm.IRModule:
    """The module with movements between equal scales, and largest numbers, as those of bytes."""
    values = bound_values(module)
    if not any(_is_call(value, QUANTIZE) for value in values.values()):
        return module
    tidy = tvm.transform.Sequential(
        # A second name for a tensor would end a kernel.
        [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    )
    result: tvm.IRModule = tidy(rewritten(module, _Mover(module, values)))
    return result


def _keeps_numbers(call: relax.Call) -> bool:
    """Whether every number of the result is one of the operand's, whatever their scale."""
    name = getattr(call.op, "name", "")
    if name == "relax.image.resize2d":
        is_within = call.attrs.coordinate_transformation_mode != "tf_crop_and_resize"
        return is_within and bool(call.attrs.method == "nearest_neighbor")
    return name in _MOVES or name == _PICKS


def _is_call(value: relax.Expr | None, name: str) -> bool:
    return isinstance(value, relax.Call) and getattr(value.op, "name", "") == name


@mutator
class _Mover(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(self, module: tvm.IRModule, values: dict[relax.Var, relax.Expr]) -> None:
        super().__init__(module)
        self._values = values
        self._readers = Counter(var for value in values.values() for var in free_vars(value))
        for function in module.functions.values():
            if isinstance(function, relax.Function):
                self._readers.update(free_vars(function.body.body))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """PyExprMutator's name for it."""
        numbers = quantization_of(call) if _is_call(call, QUANTIZE) else None
        if numbers is not None and numbers.is_per_tensor:
            found = self._as_bytes(call.args[0], numbers)
            if found is not None:
                return found
        return super().visit_call_(call)

    def _as_bytes(self, expr: relax.Expr, numbers: Quantization) -> relax.Expr | None:
        """The integers behind real numbers; None where they have to be computed."""
        value = self._values.get(expr) if isinstance(expr, relax.Var) else None
        if not isinstance(value, relax.Call):
            return None
        if _is_call(value, DEQUANTIZE):
            return self.visit_expr(value.args[0]) if quantization_of(value) == numbers else None
        if self._readers[expr] != 1:
            return None  # it is wanted as real numbers, too
        if _is_call(value, "relax.concat") and isinstance(value.args[0], relax.Tuple):
            return self._concat(value, numbers)
        if not _keeps_numbers(value):
            return None
        source = self._as_bytes(value.args[0], numbers)
        if source is None:
            return None
        rest = [self.visit_expr(argument) for argument in value.args[1:]]
        return self.builder_.emit(relax.Call(value.op, [source, *rest], value.attrs, value.ty_args))

    def _concat(self, call: relax.Call, numbers: Quantization) -> relax.Expr:
        """Fields of another scale are quantized one by one, where they are computed."""
        fields = []
        for field in call.args[0].fields:
            known = self._as_bytes(field, numbers)
            if known is None:
                known = self.builder_.emit(quantize(self.visit_expr(field), numbers))
            fields.append(known)
        return self.builder_.emit(relax.op.concat(fields, call.attrs.axis))
