"""Schedules of one kernel over the same tensors."""

from __future__ import annotations

import tvm
from tvm import te, tirx

from workers.tuning.bench import Bench, agree

TARGET = tvm.target.Target({"kind": "llvm"})


def doubled(begins_at: int) -> tirx.PrimFunc:
    """Twice its input, from an element on."""
    x = te.placeholder((32,), "float32", "x")
    y = te.compute((32,), lambda i: te.if_then_else(i >= begins_at, x[i] * 2.0, 0.0), "y")
    return te.create_prim_func([x, y])


def test_what_a_schedule_leaves_out_is_not_taken_from_the_one_before() -> None:
    whole, part = doubled(0), doubled(16)
    bench = Bench(whole, TARGET)
    wanted = bench.results(bench.call_of(whole))
    assert agree(bench.results(bench.call_of(whole)), wanted)
    assert not agree(bench.results(bench.call_of(part)), wanted)
    assert not agree(bench.results(lambda: None), wanted)
