"""The table of artifacts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime, enum_column
from service.contracts.artifacts import Manifest
from service.contracts.targets import Abi


class ArtifactRow(Base):
    """One built target: a manifest over blobs."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("compilation_id", "feature_level", "abi"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    compilation_id: Mapped[str] = mapped_column(ForeignKey("compilations.id"))
    feature_level: Mapped[int] = mapped_column(Integer)
    abi: Mapped[Abi] = mapped_column(enum_column(Abi))
    manifest: Mapped[Manifest] = mapped_column(PydanticJson(Manifest))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
