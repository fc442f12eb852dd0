"""Settings of the supervisor itself; each part reads its own."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_PORT = 8000


class LocalSettings(BaseSettings):
    """What one machine needs to know."""

    model_config = SettingsConfigDict(env_prefix="NNFARM_", extra="ignore")

    data_dir: Path = Field(Path("var"), description="Database, blobs, queue, secrets, logs")
    host: str = Field("127.0.0.1", description="Address the service listens on")
    port: int | None = Field(None, description="Port of the service; serve: 8000, demo: a free one")
    database_url: str | None = Field(
        None, description="A database that runs already; default: SQLite in the data folder"
    )
    redis_url: str | None = Field(
        None, description="A Redis that runs already; default: a redis-server of the stack's own"
    )
