"""Register tiles on the stack.

TVM asks its workspace for every local buffer of 1 KiB and more: a call, memset and stores for each
tile, which weighs on kernels whose sums are short. LLVM keeps a buffer of constant size
in registers only where it stands on the stack.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax, s_tir, tirx

PIPELINE = "nnfarm.cpu"
"""Name of the lowering below, for `relax.build` and `tvm.compile` (`tir_pipeline`)."""

MAX_BYTES = 16 << 10
"""Larger buffers stay in the workspace: threads of a phone's app have small stacks."""

_TO_ALLOCATIONS = (
    s_tir.transform.CanonicalizeLoop,
    s_tir.transform.LowerCrossThreadReduction,
    s_tir.transform.LowerInitBlock,
    s_tir.transform.PlanAndUpdateBufferAllocationLocation,
    s_tir.transform.ConvertBlocksToOpaque,
    s_tir.transform.CompactBufferAllocation,
    s_tir.transform.LowerMatchBuffer,
    s_tir.transform.StmtSimplify,
    s_tir.transform.LowerOpaqueBlock,
)
"""The first passes of TVM's own pipeline: after them buffers are statements with annotations."""


def executable_of(lowered: tvm.IRModule, target: tvm.target.Target) -> relax.VMExecutable:
    """What `lower_for_cpu` made, compiled.

    Args:
        lowered: scheduled kernels and the functions that call them.
        target: as it was lowered for.
    """
    return relax.build(lowered, target, tir_pipeline=PIPELINE)


def _pipeline() -> tuple[Any, Any, Any]:
    """TVM's pipeline with a step of ours in it; its first passes find nothing to do again."""
    usual, host, device = tirx.get_tir_pipeline("default")
    first = tvm.transform.Sequential([make() for make in _TO_ALLOCATIONS])

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def lowered(module: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        result: tvm.IRModule = usual(_on_stack(first(module)))
        return result

    return lowered, host, device


def _on_stack(module: tvm.IRModule) -> tvm.IRModule:
    for variable, function in module.functions.items():
        if isinstance(function, tirx.PrimFunc):
            module.update_func(variable, function.with_body(_kept(function.body)))
    return module


def _kept(statement: tirx.Stmt) -> tirx.Stmt:
    """The statement with its small local buffers marked."""
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([_kept(part) for part in statement.seq])
    if isinstance(statement, tirx.For):
        return tirx.For(
            statement.loop_var,
            statement.min,
            statement.extent,
            statement.kind,
            _kept(statement.body),
            statement.thread_binding,
            statement.annotations,
            statement.step,
        )
    if isinstance(statement, tirx.AllocBuffer) and _is_small(statement.buffer):
        return tirx.AllocBuffer(statement.buffer, annotations={"disable_lower_builtin": True})
    return statement


def _is_small(buffer: tirx.Buffer) -> bool:
    if buffer.scope() != "local" or not all(isinstance(n, int | tirx.IntImm) for n in buffer.shape):
        return False
    size_bytes: int = math.prod(map(int, buffer.shape)) * tvm.DataType(buffer.dtype).itemsize
    return size_bytes <= MAX_BYTES


tirx.register_tir_pipeline(PIPELINE, _pipeline)
