"""Artifacts as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.artifacts import Manifest
from service.contracts.targets import Abi
from service.resources.artifacts.tables import ArtifactRow


class ArtifactSummary(BaseModel):
    """An artifact as listed with its compilation."""

    id: str = Field(examples=["art_0r9xk2v7mq3t8w5y1z6c4b0n"])
    feature_level: int = Field(examples=[4])
    abi: Abi
    size_bytes: int = Field(description="Of the package")
    needed_level: int = Field(description="Least level its NNAPI subgraphs use; 0: none")
    offloaded_count: int = Field(examples=[66])
    operation_count: int = Field(examples=[70])
    subgraph_count: int = Field(examples=[1])


class Artifact(BaseModel):
    """One built target."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["art_0r9xk2v7mq3t8w5y1z6c4b0n"])
    compilation_id: str
    feature_level: int = Field(examples=[4])
    abi: Abi
    manifest: Manifest
    size_bytes: int = Field(description="Of the package")
    created_at: datetime


def artifact_summary(row: ArtifactRow) -> ArtifactSummary:
    """A row as listed with its compilation."""
    return ArtifactSummary(
        id=row.id,
        feature_level=row.feature_level,
        abi=row.abi,
        size_bytes=row.size_bytes,
        needed_level=row.manifest.needed_level,
        offloaded_count=row.manifest.offloaded_count,
        operation_count=row.manifest.operation_count,
        subgraph_count=row.manifest.subgraph_count,
    )
