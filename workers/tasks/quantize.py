"""Quantizations as a kind of job."""

from __future__ import annotations

from pathlib import Path

from service.contracts.quantization import QuantizeOutcome, QuantizeSpec
from service.contracts.tasks import QUANTIZE_TASK
from workers.job_kind import Fetch, JobKind
from workers.quantization.job import QuantizeInput
from workers.settings import WorkerSettings


def _prepare(spec: QuantizeSpec, folder: Path, fetch: Fetch, _: WorkerSettings) -> QuantizeInput:
    model, dataset = folder / "model.onnx", folder / "dataset.npz"
    fetch(spec.model_sha256, model)
    fetch(spec.dataset_sha256, dataset)
    return QuantizeInput(spec=spec, model_path=model, dataset_path=dataset)


QUANTIZATION = JobKind(
    task=QUANTIZE_TASK,
    collection="quantizations",
    spec=QuantizeSpec,
    outcome=QuantizeOutcome,
    entry="workers.quantization.child",
    prepare=_prepare,
    actor="quantizer",
    area="quantize",
)
