"""The table of compilations."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import PydanticJson
from service.contracts.jobs import CompileOptions, CompileTarget, EvaluationSet
from service.jobs.tables import JobRow

RunWish = Literal["any", "all"] | list[str]
"""What to run once the artifacts are there; a list holds device ids."""


class CompilationRow(JobRow):
    """One compile request."""

    __tablename__ = "compilations"

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id"))
    targets: Mapped[tuple[CompileTarget, ...]] = mapped_column(
        PydanticJson(tuple[CompileTarget, ...])
    )
    options: Mapped[CompileOptions] = mapped_column(PydanticJson(CompileOptions))
    run_wishes: Mapped[list[RunWish]] = mapped_column(PydanticJson(list[RunWish]))
    evaluation: Mapped[EvaluationSet | None] = mapped_column(PydanticJson(EvaluationSet))
