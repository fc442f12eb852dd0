"""Who makes and who reads the tensors between kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, tirx

from workers.graph.graph import free_vars

_KERNEL_CALLS = ("relax.call_tir", "relax.call_tir_inplace")


@dataclass(frozen=True)
class Tensors:
    """Variables of a module's functions.

    Attributes:
        module: scheduled, in dataflow form.
        calls: what every variable that is a kernel's one result is bound to.
        readers: variables bound to what reads a variable, in order of execution.
        shared: variables that may be other tensors under another name, or are read by something
            else than kernels: reshaped, returned, put into tuples, given to a driver.
    """

    module: tvm.IRModule
    calls: Mapping[relax.Var, relax.Call]
    readers: Mapping[relax.Var, Sequence[relax.Var]]
    shared: frozenset[relax.Var]

    @classmethod
    def of(cls, module: tvm.IRModule) -> Tensors:
        """The variables of all Relax functions."""
        calls: dict[relax.Var, relax.Call] = {}
        readers: dict[relax.Var, list[relax.Var]] = {}
        shared: set[relax.Var] = set()
        for function in module.functions.values():
            if not isinstance(function, relax.Function):
                continue
            shared.update(free_vars(function.body.body))
            for binding in (b for block in function.body.blocks for b in block.bindings):
                is_call = _is_kernel_call(binding.value)
                if is_call and isinstance(binding.var.ty, relax.TensorType):
                    calls[binding.var] = binding.value
                for var in dict.fromkeys(free_vars(binding.value)):
                    readers.setdefault(var, []).append(binding.var)
                    if not is_call:
                        shared.add(var)
        return cls(module, calls, readers, frozenset(shared))

    def is_private(self, var: relax.Var) -> bool:
        """Whether a tensor is one kernel's result, and only kernels read it."""
        return var in self.calls and var in self.readers and var not in self.shared

    def kernel_of(self, var: relax.Var) -> tirx.PrimFunc | None:
        """The kernel whose one result a variable is, if it makes a new tensor for it."""
        call = self.calls.get(var)
        if call is None or call.op.name != "relax.call_tir" or len(call.args) > 2:
            return None
        return self.module[call.args[0]]


def _is_kernel_call(value: relax.Expr) -> bool:
    return isinstance(value, relax.Call) and getattr(value.op, "name", "") in _KERNEL_CALLS
