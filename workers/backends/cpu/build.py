"""Lowering of a Relax module for a CPU."""

from __future__ import annotations

import tvm
from tvm import relax


def lower_for_cpu(module: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """Operators to fused TIR functions.

    Args:
        module: `main`, with calls of external modules where something was offloaded.
        target: LLVM target of the ABI.
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
        return passes(module)
