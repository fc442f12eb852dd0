"""Tune jobs: a model in, faster schedules for its CPU kernels into the service's database."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.contracts.artifacts import Sha256
from service.contracts.bench import Bench
from service.contracts.jobs import JobOutcome, JobTicket, ModelFormat
from service.contracts.kernels import KernelTiming, Signature, TunedKernel
from service.contracts.targets import Abi

LEAST_BUDGET_S = 10
LARGEST_BUDGET_S = 600
"""A job's own limit of wall time is above it; another job goes on where this one stopped."""


HOST_TARGET = "host"
"""The worker's machine, for the ABI whose code it runs."""

ANY_TARGET = "any"
"""An attached device; a tuning names the one that was chosen."""

DEVICE_PREFIX = "dev_"

TuneTarget = Annotated[str, StringConstraints(pattern=r"^(host|any|dev_[0-9a-z]+)$", max_length=40)]


class TuneOptions(BaseModel):
    """How a model is tuned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: TuneTarget = Field(
        HOST_TARGET,
        description="Where kernels are measured: `host`, the worker's machine; the id of a device; "
        "`any`, a device that is attached",
    )
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
    bench_abi: Abi | None = Field(
        None, description="Build a bench for a device of this ABI; null: measure on this machine"
    )


class TuneOutcome(JobOutcome):
    """What a worker posts at the end; every kernel's result was in an event before."""

    abi: Abi
    machine: str = Field(
        max_length=200, description="The processor that measured; empty where a device is to"
    )
    kernel_count: int = Field(description="Different kernels of the model's CPU part")
    known_count: int = Field(description="Of these, with a record from before")
    tuned_count: int = Field(description="Of these, measured by this attempt")
    before: KernelTiming | None = Field(
        description="One inference of the whole model on the CPU by the schedule rules, "
        "interleaved with `after`; null where the budget left no time for it"
    )
    after: KernelTiming | None = Field(description="The same with every record there is")
    bench: Bench | None = Field(None, description="What a device is to measure, where one is to")

    def blob_sizes(self) -> dict[Sha256, int | None]:
        """The libraries of the bench."""
        libraries = [kernel.library for kernel in self.bench.kernels] if self.bench else []
        return {library.sha256: library.size_bytes for library in libraries}
