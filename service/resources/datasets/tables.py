"""The table of datasets."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, UtcDateTime


class DatasetRow(Base):
    """One dataset of one model; the same bytes for the same model are one dataset."""

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("model_id", "sha256"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    sha256: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sample_count: Mapped[int] = mapped_column(Integer)
    has_labels: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
