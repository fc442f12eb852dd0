"""Schedules of one kernel for a device elsewhere: drawn, compiled and linked, not measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import tvm
from tvm import tirx

from service.contracts.bench import candidate_function, ruled_function
from workers.backends.cpu.stack import PIPELINE
from workers.backends.cpu.tuned import replay, unnamed
from workers.toolchain.link import AndroidLinker
from workers.tuning.forked import Tell, told_by
from workers.tuning.kernels import Kernel
from workers.tuning.search import may_be_kept
from workers.tuning.space import draw_traces

MOST_CANDIDATES = 16
"""Of a kernel in one job; what none is found of is taken up again by the next one."""

_HANG_S = 5.0
"""What a fork may be late: LLVM cannot be told to stop."""


class Drawer:
    """Builds libraries that have one kernel in several schedules.

    Args:
        target: of the device's ABI.
        linker: for that ABI.
        seed: of what is drawn; another one draws others.
    """

    def __init__(self, target: tvm.target.Target, linker: AndroidLinker, seed: int) -> None:
        self._target = target
        self._linker = linker
        self._seed = seed

    def draw(self, kernel: Kernel, seconds: float, library: Path) -> tuple[str, ...]:
        """Write a library of the rules' schedule and of as many others as the time allows.

        Args:
            kernel: what to schedule.
            seconds: for all of it, but for one build that is under way.
            library: to be written, in a folder of its own.

        Returns:
            Traces of the others, in the order of their functions; with none there is no library.
        """
        deadline_s = time.monotonic() + seconds
        traces: list[str] = []
        seed = self._seed
        # A fork that hangs or crashes over a schedule ends; another one goes on elsewhere.
        while (left_s := deadline_s - time.monotonic()) > 0 and len(traces) < MOST_CANDIDATES:
            count = len(traces)
            work = self._building(kernel, library.parent, seed, tuple(traces), deadline_s)
            traces += told_by(work, left_s + _HANG_S)
            if len(traces) == count:
                break
            seed += 1
        if not traces:
            return ()
        names = (ruled_function(), *map(candidate_function, range(len(traces))))
        self._linker(str(library), [str(_object(library.parent, name)) for name in names])
        return tuple(traces)

    def _building(
        self,
        kernel: Kernel,
        folder: Path,
        seed: int,
        known: tuple[str, ...],
        deadline_s: float,
    ) -> Callable[[Tell[str]], None]:
        def work(tell: Tell[str]) -> None:
            if not known:
                self._build(kernel.ruled, ruled_function(), folder)
            number = len(known)
            for trace in draw_traces(kernel.function, self._target, seed):
                if number == MOST_CANDIDATES or time.monotonic() > deadline_s:
                    return
                if trace not in known and may_be_kept(trace):
                    scheduled = replay(kernel.function, trace)
                    self._build(scheduled, candidate_function(number), folder)
                    tell(trace)
                    number += 1

        return work

    def _build(self, function: tirx.PrimFunc, name: str, folder: Path) -> None:
        named = unnamed(function).with_attr("global_symbol", name)
        module = tvm.IRModule({name: named})
        compiled = tvm.compile(module, self._target, tir_pipeline=PIPELINE)
        partial = folder / f"{name}.partial.o"
        compiled.mod.write_to_file(str(partial), "o")
        partial.rename(_object(folder, name))  # whole, or not there


def _object(folder: Path, name: str) -> Path:
    return folder / f"{name}.o"
