"""The workers' side of every kind of job; each kind adds its own `complete`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field, StringConstraints

from service.authorization import JobGrant, allow_worker, require_generation
from service.components import ComponentsDep, WriteSession
from service.contracts.jobs import JobFailure, StageEvent
from service.jobs import lifecycle
from service.jobs.kind import JobKind, Row


class ClaimRequest(BaseModel):
    """A worker wants a job."""

    worker_name: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        examples=["worker-1"]
    )


class EventsRequest(BaseModel):
    """Progress of a job; also its heartbeat."""

    attempt: int
    events: list[StageEvent] = Field(default=[], max_length=1000)


def make_worker_router(kind: JobKind[Row]) -> APIRouter:
    """Claim, progress and failure of one kind of job."""
    router = APIRouter(prefix=f"/internal/v1/{kind.collection}/{{job_id}}", tags=["workers"])

    @router.post("/claim", dependencies=[Depends(allow_worker)], response_model=kind.spec_type)
    def claim_job(
        job_id: str, request: ClaimRequest, session: WriteSession, components: ComponentsDep
    ) -> BaseModel:
        """Take the job; 409 `request.conflict` when it is final or in other hands."""
        lease_s = components.settings.job_lease_s
        return lifecycle.claim(
            session, kind, job_id, request.worker_name, lease_s, components.tokens
        )

    @router.post("/events", status_code=204)
    def post_events(
        job_id: str,
        request: EventsRequest,
        grant: JobGrant,
        session: WriteSession,
        components: ComponentsDep,
    ) -> None:
        """Progress and heartbeat; 409 `request.fenced` when the worker should stop."""
        require_generation(grant, request.attempt)
        lease_s = components.settings.job_lease_s
        lifecycle.record_events(session, kind, job_id, request.attempt, request.events, lease_s)

    @router.post("/fail", status_code=204)
    def fail_job(
        job_id: str,
        failure: JobFailure,
        grant: JobGrant,
        session: WriteSession,
        components: ComponentsDep,
    ) -> None:
        """The job cannot be done; problems of class `infra` are tried again. Safe to repeat."""
        require_generation(grant, failure.attempt)
        lifecycle.fail(session, kind, job_id, failure, components.settings.max_attempts)

    return router
