"""Start and show runs; lease them to agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from service.authorization import LeaseGrant, allow_agent, allow_user, require_generation
from service.bell import AsyncListener
from service.components import Components, ComponentsDep, ReadSession, WriteSession
from service.contracts.bench import BenchReport
from service.contracts.errors import NnfarmError
from service.contracts.runs import BenchLease, Lease, LeaseRequest, RunReport
from service.pages import Page, PageDep, page_of
from service.resources.devices import repository as devices
from service.resources.runs import leases, repository, service
from service.resources.runs.schemas import HeartbeatRequest, Run, RunRequest, run_view
from service.resources.runs.tables import RunRow

router = APIRouter(prefix="/v1/runs", tags=["runs"], dependencies=[Depends(allow_user)])
agent_router = APIRouter(prefix="/internal/v1", tags=["agents"])

_RECHECK_S = 1.0  # another process of the service may have made work for us


@router.post("", status_code=201)
def start_run(request: RunRequest, session: WriteSession) -> Run:
    """Run an artifact on a device, or on any that can."""
    row = service.create_run(session, request.artifact_id, request.device_id)
    return _views(session, [row])[0]


@router.get("")
def list_runs(session: ReadSession, page: PageDep, compilation_id: str | None = None) -> Page[Run]:
    """Runs with their measurements, newest first."""
    rows = repository.page(session, page, compilation_id)
    return page_of(rows, lambda found: _views(session, found))


@router.get("/{run_id}")
def show_run(run_id: str, session: ReadSession) -> Run:
    """One run."""
    return _views(session, [service.require_run(session, run_id)])[0]


def _views(session: Session, rows: Sequence[RunRow]) -> list[Run]:
    found = devices.find_many(session, (row.device_id for row in rows if row.device_id))
    return [run_view(row, found.get(row.device_id or "")) for row in rows]


@agent_router.post(
    "/leases",
    response_model=Lease | BenchLease,
    dependencies=[Depends(allow_agent)],
    responses={204: {"description": "Nothing to do"}},
)
async def lease_run(
    request: LeaseRequest, connection: Request, components: ComponentsDep
) -> Lease | BenchLease | Response:
    """Take a run for one of the devices offered; waits a while for one to come."""
    await run_in_threadpool(_note_agent, components, request)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + components.settings.long_poll_s
    listener = AsyncListener()
    with components.bell.subscribed(leases.TOPIC, listener.notify):
        # A lease given to a caller that has gone would hold its device until it expires.
        while not await connection.is_disconnected():
            listener.reset()
            lease = await run_in_threadpool(_try_lease, components, request)
            left_s = deadline - loop.time()
            if lease is not None:
                return lease
            if left_s <= 0:
                return Response(status_code=204)
            await listener.wait(min(left_s, _RECHECK_S))
    return Response(status_code=204)


def _note_agent(components: Components, request: LeaseRequest) -> None:
    with components.database.writing() as session:
        leases.note_agent(session, request)


def _try_lease(components: Components, request: LeaseRequest) -> Lease | BenchLease | None:
    with components.database.reading() as session:
        if not leases.has_work(session, request):
            return None
    try:
        with components.database.writing() as session:
            return leases.take_lease(session, request, components.settings, components.tokens)
    except NnfarmError as error:
        if error.code == "request.conflict":  # lost a race; the next look sees the new state
            return None
        raise


@agent_router.post("/runs/{run_id}/heartbeat", status_code=204)
def extend_lease(
    run_id: str,
    request: HeartbeatRequest,
    grant: LeaseGrant,
    session: WriteSession,
    components: ComponentsDep,
) -> None:
    """The agent still works on the run; 409 `request.fenced` when it should stop."""
    require_generation(grant, request.fence)
    leases.heartbeat(session, run_id, request.fence, components.settings.run_lease_s)


@agent_router.post("/runs/{run_id}/report", status_code=204)
def report_run(
    run_id: str,
    report: RunReport,
    grant: LeaseGrant,
    session: WriteSession,
    components: ComponentsDep,
) -> None:
    """The agent's final word on a lease; safe to repeat."""
    require_generation(grant, report.fence)
    leases.report(session, run_id, report, components.settings.max_attempts)


@agent_router.post("/runs/{run_id}/kernels", status_code=204)
def take_benched(
    run_id: str, report: BenchReport, grant: LeaseGrant, session: WriteSession
) -> None:
    """Kernels of a bench that are measured; kept at once. Safe to repeat."""
    require_generation(grant, report.fence)
    leases.take_benched(session, run_id, report)
