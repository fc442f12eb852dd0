"""Lowering of a Relax module for a CPU."""

from __future__ import annotations

import tvm
from tvm import relax

from workers.backends.cpu.schedule import schedule


def lower_for_cpu(
    module: tvm.IRModule, target: tvm.target.Target
) -> tuple[tvm.IRModule, tuple[str, ...]]:
    """Operators to fused and scheduled TIR functions.

    Args:
        module: `main`, with calls of external modules where something was offloaded.
        target: LLVM target of the ABI.

    Returns:
        The lowered module, and names of the kernels that run unscheduled (slow).
    """
    passes = tvm.transform.Sequential(
        [
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
            relax.transform.DeadCodeElimination(),
        ]
    )
    with target:
        return schedule(passes(module))
