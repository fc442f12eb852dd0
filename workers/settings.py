"""Settings of a compile worker: environment variables with the prefix ``NNFARM_``."""

from __future__ import annotations

import platform
from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from workers.confine import SandboxLimits

_MIB = 1 << 20


class WorkerSettings(BaseSettings):
    """Everything an operator can choose for a worker."""

    model_config = SettingsConfigDict(env_prefix="NNFARM_", extra="ignore", frozen=True)

    url: str = Field("http://127.0.0.1:8000", description="Where the service is")
    redis_url: str = Field("redis://127.0.0.1:6379/0", description="The queue")
    worker_token: SecretStr = Field(min_length=8)
    worker_dir: Path = Field(Path("var/worker"), description="Scratch: job folders, cached models")
    native_dir: Path = Field(Path("build"), description="Where the native parts are built")

    worker_concurrency: int = Field(1, gt=0, description="Jobs at a time")
    heartbeat_interval_s: float = Field(3.0, gt=0, description="Well below the service's lease")
    visibility_timeout_s: int = Field(
        60,
        gt=0,
        description="The queue hands out an unfinished task again after so long. It may be shorter "
        "than a job: the heartbeat keeps the job's lease, so the second claim is refused.",
    )

    job_entry: str = Field("workers.pipeline.child", description="Module that compiles")
    job_memory_bytes: int = Field(8192 * _MIB, gt=0)
    job_cpu_s: int = Field(600, gt=0)
    job_wall_s: float = Field(900.0, gt=0)
    job_file_bytes: int = Field(4096 * _MIB, gt=0)
    job_open_files: int = Field(1024, gt=0)
    job_require_isolation: bool = Field(
        False, description="Refuse to work where the kernel lacks namespaces or Landlock"
    )

    @property
    def limits(self) -> SandboxLimits:
        """What one job may use."""
        return SandboxLimits(
            memory_bytes=self.job_memory_bytes,
            cpu_s=self.job_cpu_s,
            wall_s=self.job_wall_s,
            file_bytes=self.job_file_bytes,
            open_files=self.job_open_files,
            require_isolation=self.job_require_isolation,
            readable=(str(self.stub_dir), str(self.player_library.parent)),
        )

    @property
    def stub_dir(self) -> Path:
        """Where the linker's stub libraries are kept; several workers may share it."""
        return self.native_dir.resolve() / "toolchain"

    @property
    def player_library(self) -> Path:
        """The NNAPI player for this machine; compiled models are serialised through it."""
        bundle = self.native_dir.resolve() / "runtime" / f"linux-{platform.machine()}"
        return bundle / "libnnfarm_nnapi.so"
