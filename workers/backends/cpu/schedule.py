"""The schedule of every CPU kernel: the first rule that fits it.

TVM's own CPU lowering leaves every kernel a scalar loop nest on one thread. A kernel that no rule
covers stays one, is correct, and is named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import tvm
from tvm import s_tir, tirx

from workers.backends.cpu.schedules.elementwise import schedule_elementwise
from workers.backends.cpu.schedules.kernel import Kernel, NotCovered
from workers.backends.cpu.schedules.plain import schedule_plain
from workers.backends.cpu.schedules.register_tile import schedule_register_tile
from workers.backends.cpu.schedules.rows import schedule_rows
from workers.backends.cpu.schedules.transposition import schedule_transposition
from workers.backends.cpu.schedules.window import schedule_window
from workers.backends.cpu.schedules.winograd import schedule_winograd
from workers.backends.cpu.tuned import Tunings
from workers.backends.cpu.vectors import Vectors

logger = logging.getLogger(__name__)

RULES: tuple[Callable[[Kernel], None], ...] = (
    schedule_winograd,
    schedule_register_tile,
    schedule_window,
    schedule_transposition,
    schedule_elementwise,
    schedule_rows,
    schedule_plain,
)
"""In the order they are tried; each refuses what it is not made for."""


def schedule(
    module: tvm.IRModule, vectors: Vectors, tunings: Tunings | None = None
) -> tuple[tvm.IRModule, tuple[str, ...]]:
    """Schedule every TIR function of a module.

    Args:
        module: legalised and fused; TIR functions have static shapes or are left alone.
        vectors: registers of the target.
        tunings: schedules that measured faster than those of the rules.

    Returns:
        The module, and names of the functions that no rule covered.
    """
    uncovered: list[str] = []
    scheduled = tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions.items():
        if not isinstance(function, tirx.PrimFunc) or _is_scheduled(function):
            continue
        name = variable.name_hint
        result = tunings.schedule(name, function) if tunings is not None else None
        if result is None:
            result = _first_fit(name, function, vectors)
        if result is None:
            uncovered.append(name)
        else:
            scheduled.update_func(variable, _with_attributes(result, function))
    return scheduled, tuple(uncovered)


def _is_scheduled(function: tirx.PrimFunc) -> bool:
    return "tirx.is_scheduled" in (function.attrs or {})


def _first_fit(name: str, function: tirx.PrimFunc, vectors: Vectors) -> tirx.PrimFunc | None:
    untouched = tvm.ir.save_json(function)
    for rule in RULES:
        try:
            kernel = Kernel.of(function, vectors)
        except (NotCovered, s_tir.ScheduleError) as reason:
            logger.debug("%s: %s", name, reason)
            return None
        try:
            rule(kernel)
        except NotCovered as reason:
            logger.debug("%s: %s: %s", name, rule.__name__, reason)
        except s_tir.ScheduleError as error:
            logger.info("%s: %s is not legal: %s", name, rule.__name__, error)
        else:
            return kernel.sch.mod["main"]
        if kernel.is_touched:
            # TVM's schedules write into the function they are given.
            function = tvm.ir.load_json(untouched)
    return None


def _with_attributes(result: tirx.PrimFunc, original: tirx.PrimFunc) -> tirx.PrimFunc:
    for key, value in original.attrs.items():
        result = result.with_attr(key, value)
    if "global_symbol" not in original.attrs:
        result = result.without_attr("global_symbol")
    return result.with_attr("tirx.is_scheduled", True)
