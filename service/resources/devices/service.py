"""Rules of devices: what an agent's report means, and which device can run what."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from service.columns import utc_now
from service.contracts.devices import AgentReport, DeviceDescription, DeviceState
from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi
from service.identifiers import new_id
from service.resources.devices import quarantine, repository
from service.resources.devices.tables import DeviceRow


def require_device(session: Session, device_id: str) -> DeviceRow:
    """The device with this id.

    Raises:
        NnfarmError: ``request.not_found``.
    """
    row = repository.find(session, device_id)
    if row is None:
        raise NnfarmError("request.not_found", f"There is no device {device_id}.")
    return row


def accept_report(
    session: Session, report: AgentReport, leased_device_ids: Container[str], quarantine_s: float
) -> list[DeviceRow]:
    """Bring an agent's devices up to date; those it does not name are offline.

    Args:
        session: the transaction.
        report: what the agent has now.
        leased_device_ids: devices with a run in hand; they stay busy.
        quarantine_s: a usable device that has been in quarantine for so long is released.
    """
    serials = [description.serial for description in report.devices]
    if len(set(serials)) != len(serials):
        raise NnfarmError("request.invalid", "The report names a serial twice.")
    now = utc_now()
    known = repository.lock_of_agent(session, report.agent_name)
    rows: list[DeviceRow] = []
    for description in report.devices:
        row = known.pop(description.serial, None)
        if row is None:
            row = _new_row(report.agent_name, description, now)
            session.add(row)
        row.description = description
        row.last_seen_at = now
        if not description.reason_unusable and quarantine.is_over(row, quarantine_s):
            quarantine.lift(row)
        row.state = _state(row, leased_device_ids)
        rows.append(row)
    for missing in known.values():
        missing.state = DeviceState.OFFLINE
    session.flush()
    return rows


def can_run(device: DeviceRow, abi: Abi, needed_level: int) -> bool:
    """Whether the device, once free, can run an artifact."""
    return not obstacle(device, abi, needed_level)


def obstacle(device: DeviceRow, abi: Abi, needed_level: int) -> str:
    """Why the device can never run an artifact, as a sentence; empty if it can."""
    description = device.description
    if description.reason_unusable:
        return f"{description.name} is not usable: {description.reason_unusable}"
    if abi not in description.abis:
        return f"{description.name} has no ABI {abi}."
    if description.feature_level < needed_level:
        return (
            f"{description.name} has NNAPI feature level {description.feature_level}; "
            f"{needed_level} is needed."
        )
    return ""


def is_attached(device: DeviceRow) -> bool:
    """Whether its agent has it now, free or busy."""
    return device.state in repository.ATTACHED


def release(session: Session, device_id: str) -> None:
    """The device's run is over: it is free again if it is still there."""
    repository.move(session, device_id, (DeviceState.BUSY,), DeviceState.ONLINE)


def occupy(session: Session, device_id: str) -> bool:
    """Take a free device; answers whether it was free."""
    return repository.move(session, device_id, (DeviceState.ONLINE,), DeviceState.BUSY)


def mark_silent_offline(session: Session, timeout_s: float) -> None:
    """Devices of an agent that says nothing are offline."""
    for row in repository.silent_since(session, utc_now() - timedelta(seconds=timeout_s)):
        row.state = DeviceState.OFFLINE


def _new_row(agent_name: str, description: DeviceDescription, now: datetime) -> DeviceRow:
    return DeviceRow(
        id=new_id("dev"),
        agent_name=agent_name,
        serial=description.serial,
        description=description,
        state=DeviceState.OFFLINE,
        last_seen_at=now,
        created_at=now,
        faulted_run_ids=[],
    )


def _state(row: DeviceRow, leased_device_ids: Container[str]) -> DeviceState:
    if row.id in leased_device_ids:
        return DeviceState.BUSY
    if row.description.reason_unusable:
        return DeviceState.MAINTENANCE
    if row.quarantined_at is not None:
        return DeviceState.QUARANTINED
    return DeviceState.ONLINE
