"""What every pass over a module's Relax functions does."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax


def bound_values(module: tvm.IRModule) -> dict[relax.Var, relax.Expr]:
    """The value of every variable of all Relax functions."""
    return {
        binding.var: binding.value
        for function in module.functions.values()
        if isinstance(function, relax.Function)
        for block in function.body.blocks
        for binding in block.bindings
        if isinstance(binding, relax.VarBinding)
    }


def rewritten(module: tvm.IRModule, mutator: Any) -> tvm.IRModule:
    """The module with its Relax functions as a mutator leaves them.

    Args:
        module: what the mutator was made with.
        mutator: a PyExprMutator.
    """
    for variable, function in module.functions.items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(variable, mutator.visit_expr(function))
    result: tvm.IRModule = mutator.builder_.get()
    return result
