"""The table of quantizations."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Integer
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import PydanticJson
from service.contracts.quantization import QuantizationCost, QuantizeOptions
from service.jobs.tables import JobRow


class QuantizationRow(JobRow):
    """One quantize request, and what came of it."""

    __tablename__ = "quantizations"

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"))
    options: Mapped[QuantizeOptions] = mapped_column(PydanticJson(QuantizeOptions))

    result_model_id: Mapped[str | None] = mapped_column(ForeignKey("models.id"))
    result_dataset_id: Mapped[str | None] = mapped_column(ForeignKey("datasets.id"))
    quantized_count: Mapped[int | None] = mapped_column(Integer)
    operation_count: Mapped[int | None] = mapped_column(Integer)
    cost: Mapped[QuantizationCost | None] = mapped_column(PydanticJson(QuantizationCost))
