"""Compilations as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.contracts.errors import Problem
from service.contracts.jobs import (
    CompileOptions,
    EvaluationSet,
    JobStatus,
    Stage,
)
from service.contracts.targets import Abi
from service.resources.artifacts.schemas import ArtifactSummary
from service.resources.models.schemas import Model
from service.resources.runs.schemas import RunSummary

ShortText = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class CompilationRequest(BaseModel):
    """What to build, and where to run it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "model_id": "mod_0r9xk2v7mq3t8w5y1z6c4b0n",
                    "levels": [1, 4, 7],
                    "abis": ["arm64-v8a", "x86_64"],
                    "options": {"exclude_ops": ["Softmax"]},
                    "run_on": "any",
                }
            ]
        },
    )

    model_id: ShortText
    levels: list[int] = Field(
        min_length=1, max_length=100, description="NNAPI feature levels, 1 to 8"
    )
    abis: list[ShortText] = Field(
        default=[Abi.ARM64_V8A.value],
        min_length=1,
        max_length=100,
        description="arm64-v8a, armeabi-v7a, x86_64",
    )
    dataset_id: ShortText | None = Field(
        None, description="Evaluation inputs; without it they are drawn at random"
    )
    options: CompileOptions = CompileOptions()
    run_on: (
        Literal["none", "any", "all"]
        | Annotated[list[ShortText], Field(min_length=1, max_length=100)]
    ) = Field(
        "none",
        description="`any`: one run an artifact on some device; `all`: on every attached device "
        "that can; or device ids",
    )


class Compilation(BaseModel):
    """A compile request and how far it is."""

    id: str = Field(examples=["cmp_0r9xk2v7mq3t8w5y1z6c4b0n"])
    model: Model
    dataset_id: str | None
    levels: list[int]
    abis: list[Abi]
    options: CompileOptions
    status: JobStatus
    stage: Stage | None
    done: int = Field(description="Steps that are over")
    total: int = Field(description="Steps of the whole job; 0 until a worker has planned it")
    attempt: int = Field(description="How often a worker has begun it")
    cached: bool = Field(False, description="This answer reuses an earlier build")
    error: Problem | None
    artifacts: list[ArtifactSummary]
    runs: list[RunSummary]
    evaluation: EvaluationSet | None
    stage_durations_us: dict[str, int]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
