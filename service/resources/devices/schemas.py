"""Devices as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.devices import DeviceDescription, DeviceState
from service.resources.devices.tables import DeviceRow


class Device(BaseModel):
    """A phone of the farm."""

    model_config = ConfigDict(from_attributes=True)

    id: str = Field(examples=["dev_0r9xk2v7mq3t8w5y1z6c4b0n"])
    name: str = Field(examples=["virtual-level4-x86_64"])
    state: DeviceState
    description: DeviceDescription
    last_seen_at: datetime
    agent_name: str = Field(examples=["bench-1"])
    quarantined_at: datetime | None = Field(
        None, description="Since when it gets no runs because it kept failing; null: it gets them"
    )


class DeviceList(BaseModel):
    """All devices of one agent."""

    items: list[Device]


def device_view(row: DeviceRow) -> Device:
    """A row as the API shows it."""
    return Device(
        id=row.id,
        name=row.description.name,
        state=row.state,
        description=row.description,
        last_seen_at=row.last_seen_at,
        agent_name=row.agent_name,
        quarantined_at=row.quarantined_at,
    )
