"""Kernels that write their result over an operand that nothing reads any more.

A residual's sum goes into the memory of the branch that is added, a chain of element-wise
operations into that of its input: less memory, and it is in the cache already.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import rewritten
from workers.backends.cpu.stores import Blocks, overwriting
from workers.backends.cpu.tensors import Tensors


def reuse_operands(module: tvm.IRModule) -> tvm.IRModule:
    """The module with results in place of operands, where nobody can tell the difference.

    Args:
        module: scheduled, still in dataflow form, with reshapes as `relax.reshape`.
    """
    reused = rewritten(module, _Reuser(module))
    result: tvm.IRModule = relax.transform.DeadCodeElimination()(reused)
    return result


@mutator
class _Reuser(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(self, module: tvm.IRModule) -> None:
        super().__init__(module)
        self._module = module
        self._tensors = Tensors.of(module)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        """PyExprMutator's name for it."""
        operand = self._dying_operand(binding.var)
        if operand is None:
            super().visit_var_binding_(binding)
            return
        call = binding.value
        function = overwriting(self._module[call.args[0]], operand)
        variable = self.builder_.add_func(function, call.args[0].name_hint)
        args = self.visit_expr(call.args[1])
        same = relax.op.call_tir_inplace(variable, args, operand, call.ty_args[0])
        self.set_var_remap(binding.var, self.builder_.emit(same))

    def _dying_operand(self, var: relax.Var) -> int | None:
        """Number of an operand that the kernel may write over."""
        tensors = self._tensors
        function = tensors.kernel_of(var)
        if function is None or not tensors.is_private(var):
            return None
        args, blocks = list(tensors.calls[var].args[1].fields), Blocks.of(function)
        for number, operand in enumerate(args):
            if sum(other.same_as(operand) for other in args) > 1 or not self._dies(operand, var):
                continue
            if tvm_ffi.structural_equal(operand.ty, var.ty) and blocks.can_overwrite(number):
                return number
        return None

    def _dies(self, operand: relax.Expr, var: relax.Var) -> bool:
        """Whether a tensor is read for the last time where `var` is computed."""
        if not isinstance(operand, relax.Var) or not self._tensors.is_private(operand):
            return False
        return bool(self._tensors.readers[operand][-1].same_as(var))
