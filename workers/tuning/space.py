"""Schedules of a kernel to try: random points of MetaSchedule's search spaces.

TVM's own tuning loop is not used: its builder and runner are process pools that want the network,
and its cost model wants a library of its own. Here schedules are drawn and measured as they come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import meta_schedule
from tvm.s_tir.meta_schedule import _ffi_api, postproc, schedule_rule

from workers.backends.cpu.tuned import ENTRY, unnamed

_DRAWN_AT_ONCE = 8
_DRAWS = 12

_SUMS = "local"
"""Where tiles of sums are kept: on the stack, see `workers.backends.cpu.stack`."""


class _Context(meta_schedule.TuneContext):  # type: ignore[misc]
    """TVM's, without its import of intrinsics for graphics processors: that takes half a minute."""

    def __init__(self, module: tvm.IRModule, target: tvm.target.Target, seed: int) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.TuneContext,
            module,
            target,
            _space_generator(),
            meta_schedule.SearchStrategy.create("replay-trace"),
            ENTRY,
            1,  # thread
            seed,
            None,  # logger
        )
        _ffi_api.TuneContextInitialize(self)


def draw_traces(function: tirx.PrimFunc, target: tvm.target.Target, seed: int) -> Iterator[str]:
    """Traces in JSON, each another schedule of the kernel, none twice.

    Args:
        function: not scheduled.
        target: with the number of cores to cut loops for.
        seed: the same one gives the same traces.
    """
    module = tvm.IRModule({ENTRY: unnamed(function).without_attr("op_pattern")})
    context = _Context(module, target, seed)
    spaces = context.generate_design_space()
    strategy = context.search_strategy
    strategy.pre_tuning(
        _DRAWS * _DRAWN_AT_ONCE,
        _DRAWN_AT_ONCE,
        spaces,
        meta_schedule.database.MemoryDatabase(),
        meta_schedule.CostModel.create("random"),  # not asked by this strategy
    )
    seen: set[str] = set()
    while candidates := strategy.generate_measure_candidates():
        for candidate in candidates:
            trace = json.dumps(_plain(candidate.sch.trace.as_json()), separators=(",", ":"))
            if trace not in seen:
                seen.add(trace)
                yield trace
        strategy.notify_runner_results(candidates, [])


def _space_generator() -> meta_schedule.SpaceGenerator:
    """TVM's spaces for processors, without what changes the layout of weights."""
    return meta_schedule.space_generator.PostOrderApply(
        sch_rules=[
            schedule_rule.AutoInline(
                into_producer=False,
                into_consumer=True,
                inline_const_tensor=True,
                disallow_if_then_else=True,
                require_injective=True,
                require_ordered=True,
                disallow_op=["tirx.exp"],
            ),
            schedule_rule.AddRFactor(max_jobs_per_core=16, max_innermost_factor=64),
            schedule_rule.MultiLevelTiling(
                structure="SSRSRS",
                max_innermost_factor=64,
                reuse_write=schedule_rule.ReuseType(req="may", levels=[1, 2], scope=_SUMS),
            ),
            schedule_rule.ParallelizeVectorizeUnroll(
                max_jobs_per_core=16,
                max_vectorize_extent=64,
                unroll_max_steps=[0, 16, 64, 512],
                unroll_explicit=True,
            ),
            schedule_rule.RandomComputeLocation(),
        ],
        postprocs=[
            postproc.DisallowDynamicLoop(),
            postproc.RewriteParallelVectorizeUnroll(),
            postproc.RewriteReductionBlock(),
        ],
        mutator_probs={},
    )


def _plain(value: Any) -> Any:
    """TVM's containers and numbers as Python's."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tirx.IntImm):
        return int(value)
    if isinstance(value, tirx.FloatImm):
        return float(value)
    return [_plain(item) for item in value]
