"""One inference of a whole model on this machine: by the rules, and with the records there are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from service.contracts.kernels import KernelTiming, TunedKernel
from workers.backends.cpu.build import lower_for_cpu
from workers.backends.cpu.executable import executable_of
from workers.backends.cpu.tuned import Tunings
from workers.tuning.bench import filled, shape_of, use_threads
from workers.tuning.forked import Tell, told_by
from workers.tuning.timing import Call, interleaved, timing

_ROUNDS = 11

Pair = tuple[KernelTiming, KernelTiming]


def before_and_after(
    module: tvm.IRModule,
    target: tvm.target.Target,
    records: tuple[TunedKernel, ...],
    seconds: float,
) -> Pair | None:
    """Both times, interleaved, on one thread; None where the seconds are not enough."""
    for pair in told_by(_measuring(module, target, records), seconds):
        return pair
    return None


def _measuring(
    module: tvm.IRModule, target: tvm.target.Target, records: tuple[TunedKernel, ...]
) -> Callable[[Tell[Pair]], None]:
    def work(tell: Tell[Pair]) -> None:
        use_threads(1)
        calls = [_inference(module, target, Tunings(some)) for some in ((), records)]
        before, after = interleaved(calls, _ROUNDS)
        tell((timing(before), timing(after)))

    return work


def _inference(module: tvm.IRModule, target: tvm.target.Target, tunings: Tunings) -> Call:
    lowered, _ = lower_for_cpu(module, target, tunings)
    machine = relax.VirtualMachine(executable_of(lowered, target).vm, tvm.cpu())
    random = np.random.default_rng(0)
    inputs = [
        tvm.runtime.tensor(filled(shape_of(parameter.ty), str(parameter.ty.dtype), random))
        for parameter in module["main"].params
    ]
    main = machine["main"]
    return lambda: main(*inputs)
