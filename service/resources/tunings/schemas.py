"""Tunings as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.contracts.errors import Problem
from service.contracts.jobs import JobStatus, Stage
from service.contracts.kernels import KernelTiming
from service.contracts.targets import Abi
from service.contracts.tuning import TuneOptions
from service.resources.models.schemas import Model
from service.resources.runs.schemas import RunDevice

ShortText = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class TuningRequest(BaseModel):
    """Which model to tune, where, and for how long."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "model_id": "mod_0r9xk2v7mq3t8w5y1z6c4b0n",
                    "options": {"target": "host", "time_budget_s": 300},
                }
            ]
        },
    )

    model_id: ShortText
    options: TuneOptions = TuneOptions()


class TuningRecord(BaseModel):
    """What was measured of one kernel; it is kept for all models that have it."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["ktr_0r9xk2v7mq3t8w5y1z6c4b0n"])
    abi: Abi
    signature: str
    kernel: str = Field(description="Its name in the model that was tuned")
    calls: int
    is_kept: bool = Field(description="Whether a schedule measured faster and is used from now on")
    before: KernelTiming = Field(description="By the schedule rules")
    after: KernelTiming | None = Field(description="By the best other schedule; null: none near")
    rounds: int
    tried: int = Field(description="Schedules that were measured")
    machine: str
    simulated: bool = Field(
        description="Measured on a virtual phone: its times are not a phone's, and no compilation "
        "uses the schedule"
    )
    created_at: datetime


class Tuning(BaseModel):
    """A tune request, how far it is, and what came of it."""

    id: str = Field(examples=["tun_0r9xk2v7mq3t8w5y1z6c4b0n"])
    model: Model
    options: TuneOptions
    status: JobStatus
    stage: Stage | None
    done: int = Field(description="Steps that are over")
    total: int = Field(description="Steps of the whole job; 0 until a worker has begun")
    attempt: int = Field(description="How often a worker has begun it")
    error: Problem | None
    abi: Abi | None = Field(description="Whose code was measured")
    machine: str | None
    device: RunDevice | None = Field(description="Where it measures; null: the worker's machine")
    kernel_count: int | None = Field(description="Different kernels of the model's CPU part")
    known_count: int | None = Field(description="Of these, settled before")
    before: KernelTiming | None = Field(
        description="The whole model on one thread, by the schedule rules; null: not measured"
    )
    after: KernelTiming | None = Field(description="The same with every record there is")
    records: list[TuningRecord]
    stage_durations_us: dict[str, int]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
