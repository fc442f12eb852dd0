"""The kernels of a model's CPU part: what can be tuned, and how often it is called."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import tvm
from tvm import relax, tirx

from service.contracts.artifacts import Sha256
from workers.backends.cpu.build import fuse_for_cpu
from workers.backends.cpu.schedule import schedule
from workers.backends.cpu.tuned import ENTRY, signature_of, unnamed
from workers.backends.cpu.vectors import Vectors, vectors_of


@dataclass(frozen=True)
class Kernel:
    """One fused function.

    Attributes:
        name: in the model.
        signature: of what it computes.
        function: not scheduled.
        ruled: as the schedule rules have it.
        calls: in one inference.
    """

    name: str
    signature: Sha256
    function: tirx.PrimFunc
    ruled: tirx.PrimFunc
    calls: int


def kernels_of(module: tvm.IRModule, target: tvm.target.Target) -> tuple[Kernel, ...]:
    """The different kernels of a normalised module, in the order of their first calls."""
    vectors = vectors_of(target)
    fused = fuse_for_cpu(module, target)
    counts = _calls(fused["main"])
    found: dict[Sha256, Kernel] = {}
    for variable, count in counts.items():
        function = fused[variable]
        signature = _signature(function)
        if signature is None:
            continue
        known = found.get(signature)
        if known is not None:
            found[signature] = replace(known, calls=known.calls + count)
            continue
        ruled = _by_rules(function, vectors, target)
        found[signature] = Kernel(variable.name_hint, signature, function, ruled, count)
    return tuple(found.values())


def _signature(function: tirx.PrimFunc) -> Sha256 | None:
    try:
        return signature_of(function)
    except (ValueError, RuntimeError):
        return None  # no blocks: there is nothing to schedule


def _by_rules(
    function: tirx.PrimFunc, vectors: Vectors, target: tvm.target.Target
) -> tirx.PrimFunc:
    with target:
        module, _ = schedule(tvm.IRModule({ENTRY: unnamed(function)}), vectors)
    return module[ENTRY]


def _calls(main: relax.Function) -> dict[tvm.ir.GlobalVar, int]:
    values = (binding.value for block in main.body.blocks for binding in block.bindings)
    called = (
        value.args[0]
        for value in values
        if isinstance(value, relax.Call)
        and str(getattr(value.op, "name", "")).startswith("relax.call_tir")
    )
    return dict(Counter(called))
