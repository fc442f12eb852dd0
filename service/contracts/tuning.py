"""Tune jobs: a model in, faster schedules for its CPU kernels into the service's database."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.artifacts import Sha256
from service.contracts.jobs import JobOutcome, JobTicket, ModelFormat
from service.contracts.kernels import KernelTiming, Signature, TunedKernel
from service.contracts.targets import Abi

LEAST_BUDGET_S = 10
LARGEST_BUDGET_S = 600
"""A job's own limit of wall time is above it; another job goes on where this one stopped."""


class TuneTarget(StrEnum):
    """Where kernels are measured."""

    HOST = "host"  # the worker's machine, for the ABI whose code it runs


class TuneOptions(BaseModel):
    """How a model is tuned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: TuneTarget = TuneTarget.HOST
    time_budget_s: int = Field(
        120,
        ge=LEAST_BUDGET_S,
        le=LARGEST_BUDGET_S,
        description="Seconds spent on kernels; another job goes on where this one stopped",
    )


class KernelKey(BaseModel):
    """Names one kernel of one ABI."""

    model_config = ConfigDict(frozen=True)

    abi: Abi
    signature: Signature


class TuneSpec(JobTicket):
    """What a worker gets when it claims a tuning."""

    tuning_id: str
    model_format: ModelFormat
    model_sha256: Sha256
    time_budget_s: float = Field(description="What earlier attempts have left of the budget")
    known: tuple[KernelKey, ...] = Field(description="Kernels with a record: not tuned again")
    tuned: tuple[TunedKernel, ...] = Field(description="Records of these that are faster")


class TuneOutcome(JobOutcome):
    """What a worker posts at the end; every kernel's result was in an event before."""

    abi: Abi
    machine: str = Field(max_length=200, description="The processor that measured")
    kernel_count: int = Field(description="Different kernels of the model's CPU part")
    known_count: int = Field(description="Of these, with a record from before")
    tuned_count: int = Field(description="Of these, measured by this attempt")
    before: KernelTiming | None = Field(
        description="One inference of the whole model on the CPU by the schedule rules, "
        "interleaved with `after`; null where the budget left no time for it"
    )
    after: KernelTiming | None = Field(description="The same with every record there is")

    def blob_sizes(self) -> dict[Sha256, int | None]:
        """None."""
        return {}
