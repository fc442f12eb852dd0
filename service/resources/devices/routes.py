"""Show devices to people; take reports from agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from service.authorization import allow_agent, allow_user
from service.components import ComponentsDep, ReadSession, WriteSession
from service.contracts.devices import AgentReport
from service.contracts.errors import NnfarmError
from service.db import announce
from service.pages import Page, PageDep, page_of
from service.resources.devices import quarantine, repository, service
from service.resources.devices.schemas import Device, DeviceList, device_view
from service.resources.runs import leases

router = APIRouter(prefix="/v1/devices", tags=["devices"], dependencies=[Depends(allow_user)])
agent_router = APIRouter(
    prefix="/internal/v1/agents", tags=["agents"], dependencies=[Depends(allow_agent)]
)


@router.get("")
def list_devices(session: ReadSession, page: PageDep) -> Page[Device]:
    """All devices ever announced, newest first; `state` says which are there now."""
    return page_of(repository.page(session, page), lambda rows: [device_view(row) for row in rows])


@router.get("/{device_id}")
def show_device(device_id: str, session: ReadSession) -> Device:
    """One device."""
    return device_view(service.require_device(session, device_id))


@router.post("/{device_id}/release")
def release_device(device_id: str, session: WriteSession) -> Device:
    """End a device's quarantine now; it also ends by itself, with a report after some minutes."""
    row = quarantine.release(session, device_id)
    announce(session, leases.TOPIC)
    return device_view(row)


@agent_router.put("/{agent_name}")
def report_devices(
    agent_name: Annotated[str, Path(min_length=1, max_length=200)],
    report: AgentReport,
    session: WriteSession,
    components: ComponentsDep,
) -> DeviceList:
    """An agent's regular report: the devices it has now. All others of this agent go offline."""
    if report.agent_name != agent_name:
        raise NnfarmError(
            "request.invalid", f"The report is of {report.agent_name!r}, not of {agent_name!r}."
        )
    leased = leases.leased_device_ids(session)
    rows = service.accept_report(session, report, leased, components.settings.quarantine_s)
    announce(session, leases.TOPIC)
    return DeviceList(items=[device_view(row) for row in rows])
