"""Runs: one artifact on one device, leased to an agent."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from service.contracts.artifacts import Manifest
from service.contracts.bench import Bench
from service.contracts.errors import Problem
from service.contracts.jobs import EvaluationSet
from service.contracts.targets import Abi, CpuVariant


class RunStatus(StrEnum):
    """Life of a run. The last three are final."""

    QUEUED = "queued"
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"  # no attached device could run it


class MeasureOptions(BaseModel):
    """How long to measure; the run goes on until both minima are met."""

    warmup_count: int = 3
    min_iterations: int = 20
    min_duration_ms: int = 300
    max_iterations: int = 1000
    timeout_s: float = 300.0


class LeaseRequest(BaseModel):
    """An agent asks for work for one of its idle devices (serials)."""

    agent_name: str
    serials: tuple[str, ...]
    takes_benches: bool = Field(False, description="The agent knows what a bench is")


class RunLease(BaseModel):
    """A run handed to an agent. Every later call carries `fence`; a stale one gets 409."""

    run_id: str
    fence: int
    serial: str
    lease_token: str
    expires_in_s: float
    abi: Abi


class Lease(RunLease):
    """A run of an artifact."""

    artifact_id: str
    manifest: Manifest
    evaluation: EvaluationSet
    measure: MeasureOptions


class BenchLease(RunLease):
    """A run of a bench: the kernels that are still to be measured. For agents that take benches."""

    bench: Bench


class LatencyStats(BaseModel):
    """Statistics of one inference's wall time; raw samples are kept beside them."""

    count: int
    min_us: float
    median_us: float
    mean_us: float
    p90_us: float
    p99_us: float
    max_us: float
    mad_us: float = Field(description="Median absolute deviation")
    simulated: bool


class OutputAccuracy(BaseModel):
    """One output tensor against the original model's."""

    name: str
    max_abs_error: float
    max_rel_error: float = Field(
        description="Largest absolute error over the largest expected magnitude of the tensor"
    )
    mean_abs_error: float
    matches_nan: bool = Field(description="NaN and infinity stand where the original has them")


class Accuracy(BaseModel):
    """All outputs against the original, over the evaluation set."""

    sample_count: int
    outputs: tuple[OutputAccuracy, ...]
    max_abs_error: float
    max_rel_error: float
    top1: float | None = Field(None, description="Against the labels, 0 to 1")
    original_top1: float | None = None
    agreement: float | None = Field(
        None, description="Share of samples with the original's largest first output"
    )


class DeviceCondition(BaseModel):
    """State of the phone before or after the run; null where the phone does not tell."""

    battery_percent: float | None = None
    charging: bool | None = None
    temperature_c: float | None = None
    thermal_status: int | None = Field(None, description="Android PowerManager THERMAL_STATUS_*")
    governor: str | None = None


class Fallback(BaseModel):
    """A move to the CPU twin, once, with its reason."""

    code: str = Field(examples=["nnapi.execute_failed"])
    detail: str
    subgraph: str | None = None


class RunMeasurement(BaseModel):
    """What a successful run measured."""

    engine: str = Field(description="nnapi, mixed or cpu: what computed the published numbers")
    accelerators: tuple[str, ...] = Field((), description="NNAPI devices used, name/version/level")
    cpu_variant: CpuVariant | None = Field(
        None, description="Which of the package's codes for the CPU ran; null: the ABI's baseline"
    )
    fallbacks: tuple[Fallback, ...] = ()
    latency: LatencyStats
    samples_us: tuple[float, ...]
    load_us: float
    compile_us: float = Field(description="Of all subgraphs in this run, by cache where it served")
    compile_cold_us: float | None = Field(
        None, description="In a fresh process without a cache; at the artifact's first run there"
    )
    compile_cached_us: float | None = Field(
        None, description="In a fresh process by NNAPI's compilation cache, from feature level 3"
    )
    first_run_us: float
    peak_memory_bytes: int | None
    accuracy: Accuracy
    before: DeviceCondition
    after: DeviceCondition
    valid: bool = Field(description="False: measured hot, charging or too noisy; see notes")
    notes: tuple[str, ...] = ()


class RunReport(BaseModel):
    """An agent's final word on a lease: a measurement, that its bench is done, or a problem."""

    fence: int
    measurement: RunMeasurement | None = None
    problem: Problem | None = None
    bench_done: bool = Field(False, description="Of a bench: its kernels were told before")
    log_tail: str = ""
