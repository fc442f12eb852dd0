"""Devices as an agent announces them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.targets import Abi, CpuVariant


class DeviceState(StrEnum):
    """Health of a device."""

    ONLINE = "online"
    BUSY = "busy"
    OFFLINE = "offline"
    QUARANTINED = "quarantined"
    MAINTENANCE = "maintenance"


class Accelerator(BaseModel):
    """One NNAPI device of a phone (ANeuralNetworksDevice_*)."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(examples=["sim-npu"])
    type: str = Field(description="other, cpu, gpu or accelerator", examples=["accelerator"])
    version: str = Field(examples=["1.0"])
    feature_level: int


class DeviceDescription(BaseModel):
    """What an agent knows of a phone. `serial` names it for life within one farm."""

    serial: str = Field(examples=["127.0.0.1:5601"])
    name: str = Field(examples=["virtual-level4-x86_64"])
    model: str = Field(examples=["nnfarm virtual phone"])
    abis: tuple[Abi, ...] = Field(description="Most preferred first")
    sdk_level: int = Field(description="Android API level", examples=[30])
    feature_level: int = Field(description="NNAPI feature level of the runtime; 0: no NNAPI")
    accelerators: tuple[Accelerator, ...] = ()
    cpu_variants: tuple[CpuVariant, ...] = Field(
        (), description="Codes for the CPU beyond the ABI's baseline that it can run"
    )
    simulated: bool = Field(description="A virtual phone: its latency is simulated")
    reason_unusable: str = Field("", description="Why the agent cannot run on it; empty: it can")


class AgentReport(BaseModel):
    """An agent's regular message: which devices it has now."""

    agent_name: str
    devices: tuple[DeviceDescription, ...]
