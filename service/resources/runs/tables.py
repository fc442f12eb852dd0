"""The table of runs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime, enum_column
from service.contracts.bench import Bench
from service.contracts.errors import Problem
from service.contracts.runs import RunMeasurement, RunStatus
from service.contracts.targets import Abi


class RunRow(Base):
    """One artifact on one device, or the bench of a tuning.

    `fence` grows at every change of holder: what an old holder says is refused.
    """

    __tablename__ = "runs"
    __table_args__ = (
        Index("ix_runs_queue", "status", "abi", "feature_level"),
        Index("ix_runs_compilation_id", "compilation_id"),
        Index("ix_runs_tuning_id", "tuning_id"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    compilation_id: Mapped[str | None] = mapped_column(ForeignKey("compilations.id"))
    artifact_id: Mapped[str | None] = mapped_column(ForeignKey("artifacts.id"))
    tuning_id: Mapped[str | None] = mapped_column(ForeignKey("tunings.id"))
    bench: Mapped[Bench | None] = mapped_column(PydanticJson(Bench))
    feature_level: Mapped[int] = mapped_column(Integer)
    abi: Mapped[Abi] = mapped_column(enum_column(Abi))
    needed_level: Mapped[int] = mapped_column(Integer)
    wanted_device_id: Mapped[str | None] = mapped_column(ForeignKey("devices.id"))
    avoided_device_id: Mapped[str | None] = mapped_column(ForeignKey("devices.id"))
    device_id: Mapped[str | None] = mapped_column(ForeignKey("devices.id"))

    status: Mapped[RunStatus] = mapped_column(enum_column(RunStatus))
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    fence: Mapped[int] = mapped_column(Integer, default=0)
    agent_name: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    measurement: Mapped[RunMeasurement | None] = mapped_column(PydanticJson(RunMeasurement))
    problem: Mapped[Problem | None] = mapped_column(PydanticJson(Problem))
    log_tail: Mapped[str] = mapped_column(Text, default="")

    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    queued_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
