"""Runs as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.errors import Problem
from service.contracts.runs import RunMeasurement, RunStatus
from service.contracts.targets import Abi
from service.resources.devices.schemas import Device, device_view
from service.resources.devices.tables import DeviceRow
from service.resources.runs.tables import RunRow


class RunRequest(BaseModel):
    """Run an artifact."""

    model_config = ConfigDict(extra="forbid")

    artifact_id: str = Field(max_length=200, examples=["art_0r9xk2v7mq3t8w5y1z6c4b0n"])
    device_id: str = Field("any", max_length=200, description="A device's id, or `any`")


class RunDevice(BaseModel):
    """The phone of a run, in short."""

    id: str
    name: str
    simulated: bool = Field(description="Its latency is simulated")


class RunSummary(BaseModel):
    """A run as listed with its compilation, and as sent in its events."""

    id: str = Field(examples=["run_0r9xk2v7mq3t8w5y1z6c4b0n"])
    artifact_id: str
    feature_level: int
    abi: Abi
    device: RunDevice | None = Field(description="Null while no device is chosen")
    status: RunStatus
    attempt: int
    error: Problem | None


class Run(BaseModel):
    """One artifact on one device."""

    id: str = Field(examples=["run_0r9xk2v7mq3t8w5y1z6c4b0n"])
    compilation_id: str
    artifact_id: str
    feature_level: int
    abi: Abi
    device: Device | None = Field(description="Null while no device is chosen")
    status: RunStatus
    attempt: int = Field(description="How often an agent has begun it")
    measurement: RunMeasurement | None
    error: Problem | None
    log_tail: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class HeartbeatRequest(BaseModel):
    """The agent still works on the run."""

    fence: int


def run_view(row: RunRow, device: DeviceRow | None) -> Run:
    """A row and its device as the API shows them."""
    assert row.compilation_id is not None
    assert row.artifact_id is not None
    return Run(
        id=row.id,
        compilation_id=row.compilation_id,
        artifact_id=row.artifact_id,
        feature_level=row.feature_level,
        abi=row.abi,
        device=device_view(device) if device else None,
        status=row.status,
        attempt=row.attempt,
        measurement=row.measurement,
        error=row.problem,
        log_tail=row.log_tail,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def run_summary(row: RunRow, device: DeviceRow | None) -> RunSummary:
    """A row and its device in short."""
    assert row.artifact_id is not None
    return RunSummary(
        id=row.id,
        artifact_id=row.artifact_id,
        feature_level=row.feature_level,
        abi=row.abi,
        device=RunDevice(
            id=device.id,
            name=device.description.name,
            simulated=device.description.simulated,
        )
        if device
        else None,
        status=row.status,
        attempt=row.attempt,
        error=row.problem,
    )
