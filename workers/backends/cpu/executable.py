"""The last step: planned memory, machine code."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tvm
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline as generic

from workers.backends.cpu.in_place import reuse_operands
from workers.backends.cpu.memory_plan import plan_memory
from workers.backends.cpu.parts import write_into_concats
from workers.backends.cpu.stack import PIPELINE
from workers.backends.cpu.vectors import vectors_of


@dataclass(frozen=True)
class Executable:
    """A compiled module.

    Attributes:
        vm: what the runner loads, once it is linked.
        activation_bytes: memory of all intermediate tensors, those reused counted once. Inputs
            and outputs are the caller's.
    """

    vm: relax.VMExecutable
    activation_bytes: int


def executable_of(lowered: tvm.IRModule, target: tvm.target.Target) -> Executable:
    """What `lower_for_cpu` made, compiled.

    Args:
        lowered: scheduled kernels and the functions that call them.
        target: as it was lowered for.
    """
    # TVM's own pipeline without the passes that lower and fuse operators: they have been, and
    # its FoldConstant would compile and run kernels to look for more.
    sequence = tvm.transform.Sequential
    naming = [
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
        # From here on a reshape is another name for its operand, and seen to be one.
        relax.transform.RewriteDataflowReshape(),
    ]
    lowering = generic.dataflow_lower_passes(target)
    # It begins with TVM's own plan, which leaves alone what is planned.
    finishing = generic.finalize_passes(target)
    with target:
        named = write_into_concats(sequence(naming)(lowered), vectors_of(target))
        planned = plan_memory(sequence(lowering)(reuse_operands(named)))
    vm = relax.build(
        planned,
        target,
        relax_pipeline=sequence(finishing),
        tir_pipeline=PIPELINE,
    )
    return Executable(vm, _planned_bytes(planned))


def _planned_bytes(module: tvm.IRModule) -> int:
    """Bytes of the storages that the functions take."""
    total = 0

    def count(expression: relax.Expr) -> None:
        nonlocal total
        is_call = isinstance(expression, relax.Call)
        if is_call and expression.op == _ALLOC_STORAGE:
            total += math.prod(map(int, expression.args[0].values))

    for function in module.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function.body, count)
    return total


_ALLOC_STORAGE = tvm.ir.Op.get("relax.memory.alloc_storage")
