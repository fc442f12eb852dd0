"""A kernel on this machine: built, fed, called; two schedules of it compared."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import tirx

from workers.backends.cpu.stack import PIPELINE
from workers.backends.cpu.tuned import ENTRY, unnamed
from workers.tuning.timing import Call

_MAX_ERROR = 1e-3
"""Of the largest value: floats summed in another order. Integers may differ by one step."""

_NEVER_INDICES = ("int8", "uint8", "int16")


def use_threads(count: int) -> None:
    """Lets parallel loops of this process run on so many threads."""
    tvm.get_global_func("runtime.config_threadpool")(1, count)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


class Bench:
    """One kernel's tensors, over which all its schedules run.

    Args:
        function: any schedule of the kernel; tells the tensors' shapes and types.
        target: of this machine.
    """

    def __init__(self, function: tirx.PrimFunc, target: tvm.target.Target) -> None:
        random = np.random.default_rng(0)
        self._target = target
        self._arrays = [
            filled(shape_of(parameter), str(parameter.dtype), random)
            for parameter in function.ty.params
        ]
        self._tensors = [tvm.runtime.tensor(array) for array in self._arrays]

    def call_of(self, function: tirx.PrimFunc) -> Call:
        """A schedule, compiled; each call runs it once over the tensors."""
        module = tvm.IRModule({ENTRY: unnamed(function)})
        compiled = tvm.compile(module, self._target, tir_pipeline=PIPELINE)[ENTRY]
        return lambda: compiled(*self._tensors)

    def results(self, call: Call) -> list[NDArray[Any]]:
        """All tensors after a call, inputs included."""
        # What another schedule has left must not pass for a result of this one.
        for tensor, array in zip(self._tensors, self._arrays, strict=True):
            tensor.copyfrom(array)
        call()
        return [tensor.numpy() for tensor in self._tensors]


def agree(mine: list[NDArray[Any]], theirs: list[NDArray[Any]]) -> bool:
    """Whether two schedules computed the same."""
    return all(_close(a, b) for a, b in zip(mine, theirs, strict=True))


def _close(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    if mine.dtype.kind != "f":
        difference = np.abs(mine.astype(np.int64) - theirs.astype(np.int64))
        return int(difference.max(initial=0)) <= 1
    largest = float(np.abs(theirs).max(initial=0.0))
    return bool(np.allclose(mine, theirs, rtol=0.0, atol=_MAX_ERROR * largest, equal_nan=True))


def shape_of(parameter: Any) -> tuple[int, ...]:
    """The static shape of a tensor's type."""
    return tuple(int(size) for size in parameter.shape)


def filled(shape: tuple[int, ...], dtype: str, random: np.random.Generator) -> NDArray[Any]:
    """A tensor of numbers that no kernel stumbles over."""
    if dtype.startswith("float"):
        return random.random(shape, np.float32).astype(dtype)
    if dtype in _NEVER_INDICES:
        return random.integers(0, 4, shape).astype(dtype)
    return np.zeros(shape, dtype)  # may be indices: zero is in range everywhere
