"""The tables of tunings and of the records they have made."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Boolean, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime, enum_column, utc_now
from service.contracts.kernels import KernelTiming
from service.contracts.targets import Abi
from service.contracts.tuning import TuneOptions
from service.jobs.tables import JobRow


class TuningRow(JobRow):
    """One tune request, and what came of it."""

    __tablename__ = "tunings"

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    options: Mapped[TuneOptions] = mapped_column(PydanticJson(TuneOptions))
    compiler_version: Mapped[str] = mapped_column(Text)

    abi: Mapped[Abi | None] = mapped_column(enum_column(Abi))
    machine: Mapped[str | None] = mapped_column(String(200))
    kernel_count: Mapped[int | None] = mapped_column(Integer)
    known_count: Mapped[int | None] = mapped_column(Integer)
    before: Mapped[KernelTiming | None] = mapped_column(PydanticJson(KernelTiming))
    after: Mapped[KernelTiming | None] = mapped_column(PydanticJson(KernelTiming))


class TuningRecordRow(Base):
    """What is known of one kernel on one target by one compiler; one row each.

    What simulated devices have found stands beside that, and is used by nothing but the view.

    The id names the schedule: a row that gets another schedule gets another id, for ids of records
    are part of what artifacts are keyed by.
    """

    __tablename__ = "tuning_records"
    __table_args__ = (UniqueConstraint("compiler_hash", "abi", "signature", "simulated"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tuning_id: Mapped[str] = mapped_column(ForeignKey("tunings.id"), index=True)
    compiler_hash: Mapped[str] = mapped_column(String(64))
    abi: Mapped[Abi] = mapped_column(enum_column(Abi))
    signature: Mapped[str] = mapped_column(String(64))
    kernel: Mapped[str] = mapped_column(String(500))
    calls: Mapped[int] = mapped_column(Integer)
    trace: Mapped[str | None] = mapped_column(Text)
    before: Mapped[KernelTiming] = mapped_column(PydanticJson(KernelTiming))
    after: Mapped[KernelTiming | None] = mapped_column(PydanticJson(KernelTiming))
    rounds: Mapped[int] = mapped_column(Integer)
    tried: Mapped[int] = mapped_column(Integer)
    duration_us: Mapped[int] = mapped_column(BigInteger)
    machine: Mapped[str] = mapped_column(String(200))
    simulated: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
