"""Models as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.artifacts import Sha256
from service.contracts.jobs import ModelFormat
from service.contracts.quantization import ModelOrigin
from service.contracts.tensors import ModelSignature


class Model(BaseModel):
    """An uploaded model that passed inspection."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["mod_0r9xk2v7mq3t8w5y1z6c4b0n"])
    name: str = Field(examples=["digits"])
    format: ModelFormat
    sha256: Sha256
    size_bytes: int
    signature: ModelSignature
    derived_from: ModelOrigin | None = Field(None, description="What a quantization made it from")
    created_at: datetime
