"""The table of devices."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.columns import Base, PydanticJson, UtcDateTime, enum_column
from service.contracts.devices import DeviceDescription, DeviceState


class DeviceRow(Base):
    """A device of one agent.

    The agent is part of the key because virtual phones of two machines share loopback serials.
    """

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("agent_name", "serial"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    agent_name: Mapped[str] = mapped_column(String(200))
    serial: Mapped[str] = mapped_column(String(200))
    description: Mapped[DeviceDescription] = mapped_column(PydanticJson(DeviceDescription))
    state: Mapped[DeviceState] = mapped_column(enum_column(DeviceState))
    last_seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    faulted_run_ids: Mapped[list[str]] = mapped_column(PydanticJson(list[str]))
    """Runs whose last results here were device errors, the newest last, repeated for attempts."""
    quarantined_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Outlives `state`, which says offline when the agent goes, in quarantine or not."""
