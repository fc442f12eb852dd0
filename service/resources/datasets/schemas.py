"""Datasets as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.artifacts import Sha256


class Dataset(BaseModel):
    """Evaluation inputs of a model."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["dat_0r9xk2v7mq3t8w5y1z6c4b0n"])
    model_id: str
    sha256: Sha256
    size_bytes: int
    sample_count: int = Field(examples=[64])
    has_labels: bool
    created_at: datetime
