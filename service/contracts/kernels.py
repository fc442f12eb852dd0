"""CPU kernels: how one is scheduled, what a tuner measured, and what a later compilation uses."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from service.contracts.targets import Abi

MAX_TRACE_LETTERS = 32768

_STEPS = frozenset(
    (
        *("GetSBlock", "GetLoops", "GetChildBlocks", "GetConsumers", "GetProducers"),
        *("SamplePerfectTile", "SampleCategorical", "SampleComputeLocation"),
        *("Split", "Fuse", "Reorder", "AddUnitLoop", "Parallel", "Vectorize", "Unroll"),
        *("ComputeAt", "ReverseComputeAt", "ComputeInline", "ReverseComputeInline"),
        *("CacheRead", "CacheWrite", "RFactor", "DecomposeReduction", "EnterPostproc"),
    )
)
_NOTES = frozenset(
    (
        "meta_schedule.tiling_structure",
        *(f"meta_schedule.{what}" for what in ("parallel", "vectorize", "unroll_explicit")),
        *(f"meta_schedule.{what}" for what in ("random_compute_producer", "inline_rule")),
        *("pragma_auto_unroll_max_step", "pragma_unroll_explicit"),
    )
)


def _check_trace(trace: str) -> str:
    """Nothing but steps that cannot change what a kernel computes.

    A trace was found by a process that had one user's model in its hands, and shapes the code of
    others. TVM checks each of these steps; the ones that it takes on trust are not among them.
    """
    steps = _steps_of(trace)
    for step in steps:
        name, attributes = step[0], step[2]
        if name in ("Annotate", "Unannotate"):
            if attributes[0] not in _NOTES:
                raise ValueError(f"the trace has the annotation {str(attributes[0])[:60]!r}")
        elif name not in _STEPS:
            raise ValueError(f"the trace has the step {str(name)[:60]!r}")
    return trace


def _steps_of(trace: str) -> list[list[Any]]:
    try:
        steps, decisions = json.loads(trace)
        is_trace = isinstance(decisions, list) and all(
            len(step) == 4 and isinstance(step[0], str) and isinstance(step[2], list)
            for step in steps
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"not the JSON of a trace: {error}") from error
    if not is_trace or any(not step[2] for step in steps if step[0].endswith("nnotate")):
        raise ValueError("not the JSON of a trace")
    found: list[list[Any]] = steps
    return found


Trace = Annotated[
    str, StringConstraints(max_length=MAX_TRACE_LETTERS), AfterValidator(_check_trace)
]
"""The JSON of a TVM schedule's trace, of harmless steps only."""

Signature = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""Of a kernel: what it computes, its shapes and types; not its name in a model."""


class KernelTiming(BaseModel):
    """Median of interleaved rounds, and half the distance between their quartiles.

    Of processor time on one thread.
    """

    model_config = ConfigDict(frozen=True)

    median_us: float = Field(ge=0, allow_inf_nan=False)
    spread_us: float = Field(ge=0, allow_inf_nan=False)


class KernelTuning(BaseModel):
    """What a tuner found for one kernel; also when nothing was faster."""

    model_config = ConfigDict(frozen=True)

    abi: Abi
    signature: Signature
    kernel: str = Field(max_length=500, description="Its name in the model that was tuned")
    calls: int = Field(ge=1, description="How often that model calls it")
    trace: Trace | None = Field(
        description="The schedule that measured faster; null where the rules' own stays"
    )
    before: KernelTiming = Field(description="By the schedule rules")
    after: KernelTiming | None = Field(
        description="By the best other schedule, interleaved with `before`; null where none was "
        "near"
    )
    rounds: int = Field(ge=1, description="Of the last, interleaved measurement")
    tried: int = Field(ge=0, description="Schedules that were built and measured")
    duration_us: int = Field(ge=0, description="Wall time that this kernel took to tune")
    machine: str = Field(max_length=200, description="Where it was measured")


class TunedKernel(BaseModel):
    """A record of the service's database, as a compiler takes it."""

    model_config = ConfigDict(frozen=True)

    record_id: str
    abi: Abi
    signature: Signature
    trace: Trace
    before_us: float
    after_us: float


class AppliedTuning(BaseModel):
    """A record that shaped an artifact."""

    model_config = ConfigDict(frozen=True)

    record_id: str
    kernel: str = Field(description="Its name in this artifact")
    before_us: float = Field(description="Measured when it was tuned, by the schedule rules")
    after_us: float
