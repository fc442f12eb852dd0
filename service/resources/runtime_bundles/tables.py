"""The table of runtime bundles."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime
from service.contracts.runtime_bundles import RuntimeBundleDescription


class RuntimeBundleRow(Base):
    """One uploaded bundle; of a target the newest counts."""

    __tablename__ = "runtime_bundles"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    target: Mapped[str] = mapped_column(String(64), index=True)
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    description: Mapped[RuntimeBundleDescription] = mapped_column(
        PydanticJson(RuntimeBundleDescription)
    )
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
