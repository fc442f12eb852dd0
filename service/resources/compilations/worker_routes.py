"""The workers' side of a compilation."""

from __future__ import annotations

from service.authorization import JobGrant, require_generation
from service.components import WriteSession
from service.contracts.jobs import CompileOutcome
from service.jobs.worker_routes import make_worker_router
from service.resources.compilations import results
from service.resources.compilations.kind import COMPILATION

router = make_worker_router(COMPILATION)


@router.post("/complete", status_code=204)
def complete_compilation(
    job_id: str, outcome: CompileOutcome, grant: JobGrant, session: WriteSession
) -> None:
    """The job is done and its blobs are uploaded; safe to repeat."""
    require_generation(grant, outcome.attempt)
    results.complete(session, job_id, outcome)
