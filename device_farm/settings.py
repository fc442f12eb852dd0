"""The agent's settings, from the environment."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DEMO_PHONES = (
    "virtual-level1-x86_64",
    "virtual-level4-x86_64",
    "virtual-level7-x86_64",
    "virtual-no-nnapi-x86_64",
    "virtual-level8-arm64",
)


class FarmSettings(BaseSettings):
    """Every field can be set as NNFARM_FARM_<FIELD>, but the two that others share."""

    model_config = SettingsConfigDict(env_prefix="NNFARM_FARM_", populate_by_name=True)

    service_url: str = Field(
        "http://127.0.0.1:8000",
        validation_alias=AliasChoices("NNFARM_URL"),
        description="Where the service is; NNFARM_URL",
    )
    agent_token: str = Field(
        validation_alias=AliasChoices("NNFARM_AGENT_TOKEN"),
        description="The agents' token; NNFARM_AGENT_TOKEN",
    )
    agent_name: str = Field(default_factory=socket.gethostname)
    virtual_phones: str = Field(
        "none", description="demo, none, or profile names separated by commas"
    )
    usb_phones: bool = Field(True, description="Use the phones of this machine's adb server")
    tcp_phones: str = Field("", description="host:port of network phones, separated by commas")
    adb_path: str = Field("", description="The adb program; empty: the one of the adbutils package")
    adb_server_port: int = Field(5037, description="The adb server that has the real phones")
    runtime_dir: Path = Field(Path("build/runtime"), description="Runtime bundles by target")
    runtime_source: Literal["folder", "service"] = Field(
        "folder",
        description="service: take the bundles the service has as the agent starts, instead of "
        "those of runtime_dir",
    )
    simulator_dir: Path = Field(Path("build/simulator"), description="NNAPI simulators by target")
    work_dir: Path = Field(
        Path("build/farm"), description="Cache of parts, folders of runs and of virtual phones"
    )
    report_interval_s: float = Field(10.0, gt=0, description="How often devices are announced")

    def bundle_dir(self) -> Path:
        """Where runtime bundles are, by target."""
        if self.runtime_source == "service":
            return self.work_dir / "runtime"
        return self.runtime_dir

    def virtual_phone_names(self) -> tuple[str, ...]:
        """Profiles of the virtual phones the agent starts."""
        if self.virtual_phones in ("", "none"):
            return ()
        if self.virtual_phones == "demo":
            return DEMO_PHONES
        return split_list(self.virtual_phones)

    def tcp_phone_serials(self) -> tuple[str, ...]:
        """Serials of the network phones to connect to."""
        return split_list(self.tcp_phones)


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list, without blanks and empty ones."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
