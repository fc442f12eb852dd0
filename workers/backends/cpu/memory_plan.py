"""The tensors between kernels in as few bytes as a plan needs.

TVM's own plan gives a tensor the first storage that is free and of a size alike, so that storages
that came early stay too small for what follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import rewritten
from workers.backends.cpu.storages import Lifetime, share
from workers.graph.graph import free_vars, static_shape

_ALLOC_TENSOR = tvm.ir.Op.get("relax.builtin.alloc_tensor")


def plan_memory(module: tvm.IRModule) -> tvm.IRModule:
    """The module with its tensors in storages.

    Args:
        module: kernels are called with memory for their results, not in dataflow form. Tensors of
            open shapes, results of functions and functions with branches stay as they are.
    """
    places: dict[relax.Var, _Place] = {}
    for variable, function in module.functions.items():
        if isinstance(function, relax.Function):
            places |= _places(variable.name_hint, function)
    return rewritten(module, _Planner(module, places)) if places else module


@dataclass(frozen=True)
class _Place:
    """The storage of a tensor: its function and number there, and its size."""

    storage: tuple[str, int]
    size_bytes: int


def _places(name: str, function: relax.Function) -> Mapping[relax.Var, _Place]:
    lifetimes = _lifetimes(function)
    numbers, sizes = share(list(lifetimes.values()))
    return {
        var: _Place((name, number), sizes[number])
        for var, number in zip(lifetimes, numbers, strict=True)
    }


def _lifetimes(function: relax.Function) -> Mapping[relax.Var, Lifetime]:
    """When tensors are in use, by the variables they are made as."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    if any(isinstance(binding.value, relax.If) for binding in bindings):
        return {}
    found: dict[relax.Var, tuple[int, int]] = {}
    behind: dict[relax.Var, frozenset[relax.Var]] = {}  # tensors that a variable may be
    for step, binding in enumerate(bindings):
        if _is_new_tensor(binding):
            found[binding.var], behind[binding.var] = (step, step), frozenset([binding.var])
            continue
        # What is made of a tensor in any way may be the same memory under another name.
        tensors = _tensors_of(binding.value, behind)
        behind[binding.var] = tensors
        for tensor in tensors:
            found[tensor] = (found[tensor][0], step)
    returned = _tensors_of(function.body.body, behind)
    return {
        var: Lifetime(_bytes_of(var), first, last)
        for var, (first, last) in found.items()
        if var not in returned
    }


def _tensors_of(
    expr: relax.Expr, behind: Mapping[relax.Var, frozenset[relax.Var]]
) -> frozenset[relax.Var]:
    return frozenset().union(*(behind.get(var, frozenset()) for var in free_vars(expr)))


def _is_new_tensor(binding: relax.Binding) -> bool:
    is_call = isinstance(binding, relax.VarBinding) and isinstance(binding.value, relax.Call)
    return (
        is_call
        and bool(binding.value.op == _ALLOC_TENSOR)
        and static_shape(binding.var) is not None
    )


def _bytes_of(var: relax.Var) -> int:
    size: int = tvm.DataType(var.ty.dtype).itemsize
    return size * math.prod(static_shape(var) or ())


@mutator
class _Planner(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(self, module: tvm.IRModule, places: Mapping[relax.Var, _Place]) -> None:
        super().__init__(module)
        self._places = places
        self._storages: dict[tuple[str, int], relax.Expr] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        """PyExprMutator's name for it."""
        place = self._places.get(binding.var)
        if place is None:
            super().visit_var_binding_(binding)
            return
        shape, dtype, device, scope = binding.value.args
        if place.storage not in self._storages:
            size = relax.ShapeExpr([place.size_bytes])
            memory = relax.op.memory.alloc_storage(size, device, scope, dtype)
            self._storages[place.storage] = self.builder_.emit(memory)
        tensor = relax.op.memory.alloc_tensor(self._storages[place.storage], 0, shape, dtype)
        self.set_var_remap(binding.var, self.builder_.emit(tensor))
