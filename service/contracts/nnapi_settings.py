"""How the player asks NNAPI to compile and run a package (docs/reference/runner.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Milliseconds = Annotated[int, Field(ge=0, le=24 * 3600 * 1000)]
DEVICE_TYPES = ("other", "cpu", "gpu", "accelerator")


def _known_type(device: str) -> str:
    if device.startswith("type:") and device.removeprefix("type:") not in DEVICE_TYPES:
        raise ValueError(f"the types of devices are {', '.join(DEVICE_TYPES)}")
    return device


DeviceChoice = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, pattern=r"^[^\n]+$"),
    AfterValidator(_known_type),
]


class Preference(StrEnum):
    """ANeuralNetworksCompilation_setPreference."""

    LOW_POWER = "low-power"
    FAST_SINGLE_ANSWER = "fast-single-answer"
    SUSTAINED_SPEED = "sustained-speed"


class Priority(StrEnum):
    """ANeuralNetworksCompilation_setPriority, level 4."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Compute(StrEnum):
    """Which call of NNAPI runs an execution."""

    AUTO = "auto"
    BURST = "burst"
    SYNC = "sync"
    ASYNC = "async"


class Buffers(StrEnum):
    """Where inputs and outputs lie while NNAPI computes."""

    POINTER = "pointer"
    MEMORY = "memory"  # shared with the driver


class NnapiSettings(BaseModel):
    """Settings a package carries; None leaves one to the player. The runner's options go before."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: DeviceChoice | None = Field(
        None,
        description="NNAPI device to compile for: a name, `type:accelerator`, or `not:NAME`",
        examples=["not:nnapi-reference"],
    )
    preference: Preference | None = None
    priority: Priority | None = None
    compile_timeout_ms: Milliseconds | None = Field(None, description="0: none")
    execute_timeout_ms: Milliseconds | None = Field(None, description="0: none")
    compute: Compute | None = None
    buffers: Buffers | None = None

    def to_manifest(self) -> dict[str, str]:
        """The manifest's `nnapi_settings`: the runner's option names without their dashes."""
        given = self.model_dump(mode="json", exclude_none=True)
        return {name.replace("_", "-"): str(value) for name, value in given.items()}
