"""The workers' side of a compilation."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from service.authorization import JobGrant, allow_worker, require_generation
from service.components import ComponentsDep, WriteSession
from service.contracts.jobs import CompileFailure, CompileOutcome, JobSpec
from service.resources.compilations import jobs
from service.resources.compilations.schemas import ClaimRequest, EventsRequest

router = APIRouter(prefix="/internal/v1/compilations/{compilation_id}", tags=["workers"])


@router.post("/claim", dependencies=[Depends(allow_worker)])
def claim_job(
    compilation_id: str, request: ClaimRequest, session: WriteSession, components: ComponentsDep
) -> JobSpec:
    """Take the job; 409 `request.conflict` when it is final or in other hands."""
    return jobs.claim(
        session, compilation_id, request.worker_name, components.settings, components.tokens
    )


@router.post("/events", status_code=204)
def post_events(
    compilation_id: str,
    request: EventsRequest,
    grant: JobGrant,
    session: WriteSession,
    components: ComponentsDep,
) -> None:
    """Progress and heartbeat; 409 `request.fenced` when the worker should stop."""
    require_generation(grant, request.attempt)
    jobs.record_events(
        session, compilation_id, request.attempt, request.events, components.settings.job_lease_s
    )


@router.post("/complete", status_code=204)
def complete_job(
    compilation_id: str, outcome: CompileOutcome, grant: JobGrant, session: WriteSession
) -> None:
    """The job is done and its blobs are uploaded; safe to repeat."""
    require_generation(grant, outcome.attempt)
    jobs.complete(session, compilation_id, outcome)


@router.post("/fail", status_code=204)
def fail_job(
    compilation_id: str,
    failure: CompileFailure,
    grant: JobGrant,
    session: WriteSession,
    components: ComponentsDep,
) -> None:
    """The job cannot be done; problems of class `infra` are tried again. Safe to repeat."""
    require_generation(grant, failure.attempt)
    jobs.fail(session, compilation_id, failure, components.settings.max_attempts)
