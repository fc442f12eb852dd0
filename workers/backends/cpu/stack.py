"""Register tiles on the stack.

TVM asks its workspace for every local buffer of 1 KiB and more: a call, memset and stores for each
tile, which weighs on kernels whose sums are short. LLVM keeps a buffer of constant size
in registers only where it stands on the stack.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import tirx

PIPELINE = "nnfarm.cpu"
"""Name of the lowering below, for `relax.build` and `tvm.compile` (`tir_pipeline`)."""

MAX_BYTES = 16 << 10
"""Larger buffers stay in the workspace: threads of a phone's app have small stacks."""

_MARK = {"disable_lower_builtin": tirx.IntImm("bool", 1)}
"""Leaves a buffer where it is; LowerTVMBuiltin takes it as an IntImm only."""


def _pipeline() -> tuple[Any, Any, Any]:
    """TVM's pipeline and a step of ours after it.

    Not earlier: StorageRewrite forgets the annotations of what it makes vectors of.
    """
    usual, host, device = tirx.get_tir_pipeline("default")

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def lowered(module: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
        return _on_stack(usual(module))

    return lowered, host, device


def _on_stack(module: tvm.IRModule) -> tvm.IRModule:
    for variable, function in module.functions.items():
        if isinstance(function, tirx.PrimFunc):
            module.update_func(variable, function.with_body(_kept(function.body)))
    return module


def _kept(statement: tirx.Stmt) -> tirx.Stmt:
    """The statement with its small local buffers marked."""
    at = statement
    if isinstance(at, tirx.SeqStmt):
        return tirx.SeqStmt([_kept(part) for part in at.seq])
    if isinstance(at, tirx.AttrStmt):
        return tirx.AttrStmt(at.node, at.attr_key, at.value, _kept(at.body))
    if isinstance(at, tirx.IfThenElse):
        otherwise = None if at.else_case is None else _kept(at.else_case)
        return tirx.IfThenElse(at.condition, _kept(at.then_case), otherwise)
    if isinstance(at, tirx.For):
        return tirx.For(
            at.loop_var,
            at.min,
            at.extent,
            at.kind,
            _kept(at.body),
            at.thread_binding,
            at.annotations,
            at.step,
        )
    if isinstance(at, tirx.AllocBuffer) and _is_small(at.buffer):
        return tirx.AllocBuffer(at.buffer, annotations=_MARK)
    return at


def _is_small(buffer: tirx.Buffer) -> bool:
    if buffer.scope() != "local" or not all(isinstance(n, int | tirx.IntImm) for n in buffer.shape):
        return False
    size_bytes: int = math.prod(map(int, buffer.shape)) * tvm.DataType(buffer.dtype).itemsize
    return size_bytes <= MAX_BYTES


tirx.register_tir_pipeline(PIPELINE, _pipeline)
