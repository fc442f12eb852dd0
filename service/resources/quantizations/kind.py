"""Quantizations as a kind of job."""

from __future__ import annotations

from sqlalchemy.orm import Session

from service.contracts.quantization import QuantizeSpec
from service.contracts.tasks import COMPILE_QUEUE, QUANTIZE_TASK
from service.jobs.kind import JobKind
from service.resources.datasets import service as datasets
from service.resources.models import service as models
from service.resources.quantizations.tables import QuantizationRow


def _spec(session: Session, row: QuantizationRow, token: str) -> QuantizeSpec:
    model = models.require_model(session, row.model_id)
    return QuantizeSpec(
        quantization_id=row.id,
        attempt=row.attempt,
        job_token=token,
        model_sha256=model.sha256,
        signature=model.signature,
        dataset_sha256=datasets.require_dataset(session, row.dataset_id).sha256,
        options=row.options,
    )


QUANTIZATION = JobKind(
    name="quantization",
    collection="quantizations",
    row=QuantizationRow,
    task=QUANTIZE_TASK,
    queue=COMPILE_QUEUE,
    spec_type=QuantizeSpec,
    make_spec=_spec,
)
