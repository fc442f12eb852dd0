"""The table of models."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime, enum_column
from service.contracts.jobs import ModelFormat
from service.contracts.quantization import ModelOrigin
from service.contracts.tensors import ModelSignature


class ModelRow(Base):
    """One model; the same bytes are the same model."""

    __tablename__ = "models"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    format: Mapped[ModelFormat] = mapped_column(enum_column(ModelFormat))
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    signature: Mapped[ModelSignature] = mapped_column(PydanticJson(ModelSignature))
    derived_from: Mapped[ModelOrigin | None] = mapped_column(PydanticJson(ModelOrigin))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
