"""Quantizations as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.contracts.errors import Problem
from service.contracts.jobs import JobStatus, Stage
from service.contracts.quantization import QuantizationCost, QuantizeOptions
from service.resources.models.schemas import Model

ShortText = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class QuantizationRequest(BaseModel):
    """What to quantize, on which samples, and how."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "model_id": "mod_0r9xk2v7mq3t8w5y1z6c4b0n",
                    "dataset_id": "dat_0r9xk2v7mq3t8w5y1z6c4b0n",
                    "options": {"method": "entropy", "exclude_nodes": ["/head/Softmax"]},
                }
            ]
        },
    )

    model_id: ShortText = Field(description="A float ONNX model")
    dataset_id: ShortText = Field(
        description="Samples for calibration, and for what quantization costs"
    )
    options: QuantizeOptions = QuantizeOptions()


class Quantization(BaseModel):
    """A quantize request, how far it is, and what came of it."""

    id: str = Field(examples=["qnt_0r9xk2v7mq3t8w5y1z6c4b0n"])
    model: Model
    dataset_id: str
    options: QuantizeOptions
    status: JobStatus
    stage: Stage | None
    done: int = Field(description="Steps that are over")
    total: int = Field(description="Steps of the whole job; 0 until a worker has begun")
    attempt: int = Field(description="How often a worker has begun it")
    cached: bool = Field(False, description="This answer reuses an earlier result")
    error: Problem | None
    result: Model | None = Field(description="The quantized model; it compiles like any other")
    result_dataset_id: str | None = Field(description="The same samples, for the quantized model")
    quantized_count: int | None = Field(description="Operations that read quantized tensors")
    operation_count: int | None = Field(description="Operations of the prepared float model")
    cost: QuantizationCost | None
    stage_durations_us: dict[str, int]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
