"""The workers' side of a quantization."""

from __future__ import annotations

from service.authorization import JobGrant, require_generation
from service.components import ComponentsDep
from service.contracts.quantization import QuantizeOutcome
from service.jobs.worker_routes import make_worker_router
from service.resources.quantizations import results
from service.resources.quantizations.kind import QUANTIZATION

router = make_worker_router(QUANTIZATION)


@router.post("/complete", status_code=204)
def complete_quantization(
    job_id: str, outcome: QuantizeOutcome, grant: JobGrant, components: ComponentsDep
) -> None:
    """The job is done and the model is uploaded; safe to repeat."""
    require_generation(grant, outcome.attempt)
    results.complete(components, job_id, outcome)
