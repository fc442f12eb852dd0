"""The table of compilations."""

from __future__ import annotations

from typing import Literal

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import PydanticJson
from service.contracts.artifacts import Sha256
from service.contracts.jobs import CompileOptions, CompileTarget, EvaluationSet
from service.contracts.targets import Abi
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
    request_key: Mapped[str | None] = mapped_column(String(64), index=True)
    """The key of the request alone; `cache_key` has the tuned kernels as well."""
    compiler_version: Mapped[str | None] = mapped_column(Text)
    kernels: Mapped[dict[Abi, tuple[Sha256, ...]] | None] = mapped_column(
        PydanticJson(dict[Abi, tuple[Sha256, ...]])
    )
    evaluation: Mapped[EvaluationSet | None] = mapped_column(PydanticJson(EvaluationSet))
