"""Queries on devices."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import CursorResult, select, update
from sqlalchemy.orm import Session

from service.contracts.devices import DeviceState
from service.pages import PageRequest, fetch_page
from service.resources.devices.tables import DeviceRow

ATTACHED = (DeviceState.ONLINE, DeviceState.BUSY)


def find(session: Session, device_id: str) -> DeviceRow | None:
    """The device with this id."""
    return session.get(DeviceRow, device_id)


def lock(session: Session, device_id: str) -> DeviceRow | None:
    """The device as it is now, locked until the commit."""
    return session.get(DeviceRow, device_id, with_for_update=True, populate_existing=True)


def find_many(session: Session, ids: Iterable[str]) -> dict[str, DeviceRow]:
    """Devices by id."""
    rows = session.scalars(select(DeviceRow).where(DeviceRow.id.in_(set(ids))))
    return {row.id: row for row in rows}


def page(session: Session, request: PageRequest) -> tuple[list[DeviceRow], str | None]:
    """One page of devices."""
    return fetch_page(session, select(DeviceRow), DeviceRow.id, request)


def all_devices(session: Session) -> list[DeviceRow]:
    """Every device ever seen, the attached and the gone."""
    return list(session.scalars(select(DeviceRow).order_by(DeviceRow.id)))


def lock_of_agent(session: Session, agent_name: str) -> dict[str, DeviceRow]:
    """An agent's devices by serial, locked until the commit."""
    query = select(DeviceRow).where(DeviceRow.agent_name == agent_name)
    rows = session.scalars(query.order_by(DeviceRow.id).with_for_update())
    return {row.serial: row for row in rows}


def online_of_agent(session: Session, agent_name: str, serials: Iterable[str]) -> list[DeviceRow]:
    """Those of an agent's devices that could start a run now."""
    query = select(DeviceRow).where(
        DeviceRow.agent_name == agent_name,
        DeviceRow.serial.in_(set(serials)),
        DeviceRow.state == DeviceState.ONLINE,
    )
    return list(session.scalars(query.order_by(DeviceRow.id)))


def touch(session: Session, agent_name: str, serials: Iterable[str], now: datetime) -> None:
    """Note that the agent has just spoken of these devices."""
    session.execute(
        update(DeviceRow)
        .where(DeviceRow.agent_name == agent_name, DeviceRow.serial.in_(set(serials)))
        .values(last_seen_at=now)
    )


def move(
    session: Session, device_id: str, before: Iterable[DeviceState], after: DeviceState
) -> bool:
    """Change the state if it is one of `before`; answers whether it was."""
    result = session.execute(
        update(DeviceRow)
        .where(DeviceRow.id == device_id, DeviceRow.state.in_(tuple(before)))
        .values(state=after)
    )
    assert isinstance(result, CursorResult)
    return bool(result.rowcount)


def silent_since(session: Session, moment: datetime) -> list[DeviceRow]:
    """Attached devices whose agent has not spoken since this moment."""
    query = select(DeviceRow).where(
        DeviceRow.state != DeviceState.OFFLINE, DeviceRow.last_seen_at < moment
    )
    return list(session.scalars(query))
