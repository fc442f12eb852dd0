"""Runtime bundles as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.artifacts import Sha256
from service.contracts.runtime_bundles import RuntimeBundleDescription


class RuntimeBundle(BaseModel):
    """A zip of the player, the runner, TVM's runtime and the C header for one target."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["rtb_0r9xk2v7mq3t8w5y1z6c4b0n"])
    target: str = Field(examples=["android-arm64-v8a"])
    sha256: Sha256 = Field(description="Of the zip; also its ETag")
    size_bytes: int
    description: RuntimeBundleDescription
    created_at: datetime
