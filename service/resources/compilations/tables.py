"""The tables of compilations and of what happened to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime, enum_column
from service.contracts.errors import Problem
from service.contracts.jobs import (
    CompilationStatus,
    CompileOptions,
    CompileTarget,
    EvaluationSet,
    Stage,
)

RunWish = Literal["any", "all"] | list[str]
"""What to run once the artifacts are there; a list holds device ids."""

_NOT_FAILED = text("status <> 'failed'")


class CompilationRow(Base):
    """One compile request. At most one with the same key is alive or has succeeded."""

    __tablename__ = "compilations"
    __table_args__ = (
        Index(
            "uq_compilations_cache_key",
            "cache_key",
            unique=True,
            sqlite_where=_NOT_FAILED,
            postgresql_where=_NOT_FAILED,
        ),
        Index("ix_compilations_status", "status"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id"))
    cache_key: Mapped[str] = mapped_column(String(64))
    targets: Mapped[tuple[CompileTarget, ...]] = mapped_column(
        PydanticJson(tuple[CompileTarget, ...])
    )
    options: Mapped[CompileOptions] = mapped_column(PydanticJson(CompileOptions))
    run_wishes: Mapped[list[RunWish]] = mapped_column(PydanticJson(list[RunWish]))

    status: Mapped[CompilationStatus] = mapped_column(enum_column(CompilationStatus))
    stage: Mapped[Stage | None] = mapped_column(enum_column(Stage))
    done: Mapped[int] = mapped_column(Integer, default=0)
    total: Mapped[int] = mapped_column(Integer, default=0)
    problem: Mapped[Problem | None] = mapped_column(PydanticJson(Problem))
    log_tail: Mapped[str] = mapped_column(Text, default="")
    evaluation: Mapped[EvaluationSet | None] = mapped_column(PydanticJson(EvaluationSet))
    stage_durations_us: Mapped[dict[str, int]] = mapped_column(
        PydanticJson(dict[str, int]), default=dict
    )
    child_duration_us: Mapped[int | None] = mapped_column(BigInteger)

    attempt: Mapped[int] = mapped_column(Integer, default=0)
    worker_name: Mapped[str | None] = mapped_column(String(200))
    lease_expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    sent_at: Mapped[datetime] = mapped_column(UtcDateTime)
    sent_count: Mapped[int] = mapped_column(Integer, default=1)
    last_sequence: Mapped[int] = mapped_column(Integer, default=0)

    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class EventRow(Base):
    """One event of a compilation's stream."""

    __tablename__ = "events"

    compilation_id: Mapped[str] = mapped_column(ForeignKey("compilations.id"), primary_key=True)
    sequence: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(20))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
