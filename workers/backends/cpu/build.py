"""Lowering of a Relax module for a CPU."""

from __future__ import annotations

import tvm
from tvm import relax

from workers.backends.cpu.chains import break_chains
from workers.backends.cpu.halves import widen_halves
from workers.backends.cpu.integers import use_integers
from workers.backends.cpu.layers import lower_layers
from workers.backends.cpu.moved_bytes import move_bytes
from workers.backends.cpu.operators import lowerings
from workers.backends.cpu.recurrences import roll_lstms
from workers.backends.cpu.schedule import schedule
from workers.backends.cpu.tuned import Tunings
from workers.backends.cpu.vectors import vectors_of

MAX_FUSED = 16
"""Operators in one kernel: a sum with a quantized activation and its gate behind it. LLVM's time
grows faster than a kernel."""


def lower_for_cpu(
    module: tvm.IRModule, target: tvm.target.Target, tunings: Tunings | None = None
) -> tuple[tvm.IRModule, tuple[str, ...]]:
    """Operators to fused and scheduled TIR functions.

    Args:
        module: `main`, with calls of external modules where something was offloaded.
        target: LLVM target of the ABI.
        tunings: schedules that measured faster than those of the rules.

    Returns:
        The lowered module, and names of the kernels that run unscheduled (slow).
    """
    with target:
        return schedule(fuse_for_cpu(module, target), vectors_of(target), tunings)


def fuse_for_cpu(module: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """Operators to fused TIR functions that are still to be scheduled: the kernels."""
    vectors = vectors_of(target)
    legalize = tvm.transform.Sequential(
        [relax.transform.LegalizeOps(lowerings(vectors)), relax.transform.AnnotateTIROpPattern()]
    )
    fuse = tvm.transform.Sequential(
        [
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
            relax.transform.DeadCodeElimination(),
        ]
    )
    with target, tvm.transform.PassContext(config={"relax.FuseOps.max_depth": MAX_FUSED}):
        floats = widen_halves(lower_layers(module, vectors), vectors)
        rolled = roll_lstms(use_integers(move_bytes(floats), vectors), vectors)
        fused: tvm.IRModule = fuse(break_chains(legalize(rolled)))
        return fused
