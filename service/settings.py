"""Settings of the service: environment variables with the prefix ``NNFARM_``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service import __version__

MIB = 1 << 20


def installed_compiler_version() -> str:
    """Name the compiler workers of this installation use, without importing it.

    Raises:
        ValueError: TVM is not installed beside the service, so nobody but the operator can know.
    """
    try:
        return f"tvm-{version('apache-tvm')}+nnfarm-{__version__}"
    except PackageNotFoundError:
        raise ValueError(
            "apache-tvm is not installed here: set NNFARM_COMPILER_VERSION to a string that "
            "changes whenever the workers' compiler does"
        ) from None


class Settings(BaseSettings):
    """Everything an operator can choose. Secrets have no default on purpose."""

    model_config = SettingsConfigDict(env_prefix="NNFARM_", extra="ignore", frozen=True)

    host: str = "127.0.0.1"
    port: int = 8000
    database_url: str = "sqlite:///var/nnfarm.db"
    blob_url: str = Field("file:var/blobs", description="file:FOLDER or s3://BUCKET/PREFIX")
    s3_endpoint_url: str | None = Field(None, description="For S3-compatible stores")
    redis_url: str = "redis://127.0.0.1:6379/0"
    web_dir: Path = Path("web/dist")

    secret_key: SecretStr = Field(min_length=16, description="Signs job and lease tokens")
    worker_token: SecretStr = Field(min_length=8)
    agent_token: SecretStr = Field(min_length=8)
    api_tokens: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        (), description="Comma-separated; empty: user calls need no token"
    )
    token_lifetime_s: float = Field(86400.0, gt=0, description="Of job and lease tokens")

    max_model_bytes: int = Field(512 * MIB, gt=0)
    max_dataset_bytes: int = Field(512 * MIB, gt=0, description="Packed and unpacked size alike")
    max_blob_bytes: int = Field(2048 * MIB, gt=0)
    max_body_bytes: int = Field(16 * MIB, gt=0, description="Of JSON requests")
    inspection_memory_bytes: int = Field(4096 * MIB, gt=0)
    inspection_timeout_s: int = Field(60, gt=0)

    job_lease_s: float = Field(15.0, gt=0)
    run_lease_s: float = Field(20.0, gt=0)
    max_attempts: int = Field(3, gt=0, description="Of a job or a run, lost holders included")
    resend_after_s: float = Field(60.0, gt=0, description="A task nobody claimed is sent again")
    no_device_after_s: float = Field(30.0, gt=0, description="Then a run nobody can do is skipped")
    device_timeout_s: float = Field(30.0, gt=0, description="A silent device goes offline")
    quarantine_s: float = Field(
        600.0, ge=0, description="Rest of a device after three device errors in a row"
    )
    long_poll_s: float = Field(10.0, ge=0, description="How long an agent's lease call waits")
    sweep_interval_s: float = Field(1.0, gt=0)
    event_ping_s: int = Field(15, gt=0, description="Keep-alive of server-sent events")

    compiler_version: str = Field(
        default_factory=installed_compiler_version, description="Part of every cache key"
    )

    @field_validator("api_tokens", mode="before")
    @classmethod
    def _split_tokens(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(token.strip() for token in value.split(",") if token.strip())
        return value
