"""Chains of functions that would be one kernel, broken before they take LLVM minutes.

A function binds its argument to a name; TVM's analysis looks at the value of a name again for every
name around it, so the time of a chain grows by a factor with each function.
"""

from __future__ import annotations

import tvm
from tvm import relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import rewritten
from workers.backends.cpu.operators.packed import FUNCTION, IS_OPAQUE

MAX_NESTED = 3
"""Functions of one another in a kernel: four took 0.5 s to compile, six 54."""

_FUSIBLE = 4
"""Patterns up to TVM's kOutEWiseFusable may be in one kernel with what follows."""


def break_chains(module: tvm.IRModule) -> tvm.IRModule:
    """The module with some functions as kernels by themselves.

    Args:
        module: legalised, its TIR functions with their patterns.
    """
    return rewritten(module, _Breaker(module))


@mutator
class _Breaker(PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: tvm.IRModule) -> None:
        super().__init__(module)
        self._module = module
        self._nested: dict[relax.Var, int] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        """PyExprMutator's name for it."""
        callee = _callee(binding.value)
        function = None if callee is None else self._module[callee]
        if not isinstance(function, tirx.PrimFunc):
            super().visit_var_binding_(binding)
            return
        is_function = FUNCTION in function.attrs
        inside = max((self._nested.get(v, 0) for v in binding.value.args[1].fields), default=0)
        if int(function.attrs.get("op_pattern", IS_OPAQUE["op_pattern"])) > _FUSIBLE:
            inside = 0
        if is_function and inside >= MAX_NESTED:
            self._emit_alone(binding, callee, function)
            return
        self._nested[binding.var] = inside + is_function
        super().visit_var_binding_(binding)

    def _emit_alone(
        self, binding: relax.VarBinding, callee: tvm.ir.GlobalVar, function: tirx.PrimFunc
    ) -> None:
        alone = function.with_attr("op_pattern", IS_OPAQUE["op_pattern"])
        variable = self.builder_.add_func(alone, callee.name_hint)
        call = self.visit_expr(binding.value)
        args = [variable, *call.args[1:]]
        value = self.builder_.emit(relax.Call(call.op, args, call.attrs, call.ty_args))
        self.set_var_remap(binding.var, value)


def _callee(expr: relax.Expr) -> tvm.ir.GlobalVar | None:
    is_call = isinstance(expr, relax.Call) and getattr(expr.op, "name", "") == "relax.call_tir"
    return expr.args[0] if is_call else None
