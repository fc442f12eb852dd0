"""The columns of every table of jobs, and the table of what happened to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, Integer, String, Text, text
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from sqlalchemy.schema import SchemaItem

from service.columns import Base, PydanticJson, UtcDateTime, enum_column, utc_now
from service.contracts.errors import Problem
from service.contracts.jobs import JobStatus, Stage

_NOT_FAILED = text("status <> 'failed'")


class JobRow(Base):
    """One job. At most one of a table with the same key is alive or has succeeded."""

    __abstract__ = True

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    cache_key: Mapped[str] = mapped_column(String(64))

    status: Mapped[JobStatus] = mapped_column(enum_column(JobStatus), default=JobStatus.QUEUED)
    stage: Mapped[Stage | None] = mapped_column(enum_column(Stage))
    done: Mapped[int] = mapped_column(Integer, default=0)
    total: Mapped[int] = mapped_column(Integer, default=0)
    problem: Mapped[Problem | None] = mapped_column(PydanticJson(Problem))
    log_tail: Mapped[str] = mapped_column(Text, default="")
    stage_durations_us: Mapped[dict[str, int]] = mapped_column(
        PydanticJson(dict[str, int]), default=dict
    )
    child_duration_us: Mapped[int | None] = mapped_column(BigInteger)

    attempt: Mapped[int] = mapped_column(Integer, default=0)
    worker_name: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sent_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    sent_count: Mapped[int] = mapped_column(Integer, default=1)
    last_sequence: Mapped[int] = mapped_column(Integer, default=0)

    created_at: Mapped[datetime] = mapped_column(UtcDateTime, default=utc_now)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> tuple[SchemaItem, ...]:
        """Indexes by which jobs of the same key and jobs in a state are found."""
        return (
            Index(
                f"uq_{cls.__tablename__}_cache_key",
                "cache_key",
                unique=True,
                sqlite_where=_NOT_FAILED,
                postgresql_where=_NOT_FAILED,
            ),
            Index(f"ix_{cls.__tablename__}_status", "status"),
        )


class EventRow(Base):
    """One event of a job's stream; ids of jobs differ between kinds."""

    __tablename__ = "events"

    job_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(20))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
