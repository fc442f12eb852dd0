"""Tensors as they appear at a model's border."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class DType(StrEnum):
    """Element types at a model's inputs and outputs."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    FLOAT64 = "float64"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"


class TensorSpec(BaseModel):
    """Name, element type and shape of one input or output; -1 is a dimension known at run time."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(examples=["image"])
    dtype: DType = Field(examples=["float32"])
    shape: tuple[int, ...] = Field(examples=[[1, 1, 8, 8]])


class ModelSignature(BaseModel):
    """Inputs and outputs of a model, in the model's own order and names."""

    model_config = ConfigDict(frozen=True)

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
