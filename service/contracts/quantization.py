"""Quantize jobs: a float ONNX model and a dataset in, a QDQ model and what it costs out."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.artifacts import Sha256
from service.contracts.jobs import JobOutcome, JobTicket, NodeName
from service.contracts.tensors import ModelSignature


class CalibrationMethod(StrEnum):
    """How a tensor's range is chosen from the values it takes on the dataset."""

    MINMAX = "minmax"  # all of them
    ENTROPY = "entropy"  # the range that loses the least information (KL divergence)
    PERCENTILE = "percentile"  # without the outermost share


class IntegerType(StrEnum):
    """Element types of quantized tensors."""

    INT8 = "int8"
    UINT8 = "uint8"


class QuantizeOptions(BaseModel):
    """Options that shape the quantized model; part of the cache key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: CalibrationMethod = CalibrationMethod.MINMAX
    percentile: float = Field(
        99.999,
        gt=50,
        le=100,
        description="Share of a tensor's values inside its range, in percent; for `percentile`",
    )
    per_channel: bool = Field(
        True, description="A scale for every output channel of the weights; needs int8 weights"
    )
    activation: IntegerType = Field(
        IntegerType.INT8,
        description="NNAPI takes int8 from feature level 4; below, the compiler shifts it to uint8",
    )
    weight: IntegerType = IntegerType.INT8
    exclude_nodes: tuple[NodeName, ...] = Field(
        (), description="Nodes that stay float, by name", examples=[["/head/Softmax"]]
    )


class QuantizeSpec(JobTicket):
    """What a worker gets when it claims a quantization."""

    quantization_id: str
    model_sha256: Sha256
    signature: ModelSignature
    dataset_sha256: Sha256
    options: QuantizeOptions


class QuantizationCost(BaseModel):
    """The quantized model against the float model, both by ONNX Runtime, on the dataset."""

    model_config = ConfigDict(frozen=True)

    sample_count: int
    float_top1: float | None = Field(description="Against the labels, 0 to 1")
    quantized_top1: float | None
    agreement: float | None = Field(
        description="Share of samples with the float model's largest first output; null where "
        "that output is no vector of scores"
    )
    loss: float | None = Field(
        description="What is lost, 0 to 1: top-1 where there are labels, else agreement",
        examples=[0.004],
    )
    max_abs_error: float
    max_rel_error: float = Field(
        description="Largest absolute error over the largest magnitude of its output"
    )


class QuantizeOutcome(JobOutcome):
    """What a worker posts when the quantized model is there."""

    model_sha256: Sha256
    model_size_bytes: int
    quantized_count: int = Field(description="Operations that read dequantized tensors")
    operation_count: int = Field(description="Operations of the prepared float model")
    cost: QuantizationCost

    def blob_sizes(self) -> dict[Sha256, int | None]:
        """The model."""
        return {self.model_sha256: self.model_size_bytes}


class ModelOrigin(BaseModel):
    """What a model was made from."""

    model_config = ConfigDict(frozen=True)

    model_id: str = Field(description="The float model")
    quantization_id: str
    options: QuantizeOptions
