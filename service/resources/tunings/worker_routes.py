"""The workers' side of a tuning; what they have measured comes with their events."""

from __future__ import annotations

from service.authorization import JobGrant, require_generation
from service.components import WriteSession
from service.contracts.tuning import TuneOutcome
from service.jobs.worker_routes import make_worker_router
from service.resources.tunings import service
from service.resources.tunings.kind import TUNING

router = make_worker_router(TUNING)


@router.post("/complete", status_code=204)
def complete_tuning(
    job_id: str, outcome: TuneOutcome, grant: JobGrant, session: WriteSession
) -> None:
    """The job is done; safe to repeat."""
    require_generation(grant, outcome.attempt)
    service.complete(session, job_id, outcome)
