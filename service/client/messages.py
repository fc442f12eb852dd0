"""What the client reads from and sends to the public API.

Reading is tolerant: unknown fields are ignored, so an older client works with a newer service. The
full description of every resource is the service's OpenAPI document.
"""

from __future__ import annotations

from typing import Any, Literal, NewType

from pydantic import BaseModel, ConfigDict

from service.contracts.artifacts import ExplanationReport, Manifest
from service.contracts.devices import DeviceDescription, DeviceState
from service.contracts.errors import Problem
from service.contracts.jobs import CompileOptions, JobStatus
from service.contracts.kernels import KernelTiming
from service.contracts.quantization import ModelOrigin, QuantizationCost, QuantizeOptions
from service.contracts.runs import RunMeasurement, RunStatus
from service.contracts.runtime_bundles import RuntimeBundleDescription
from service.contracts.targets import Abi
from service.contracts.tensors import ModelSignature
from service.contracts.tuning import TuneOptions

ModelId = NewType("ModelId", str)
DatasetId = NewType("DatasetId", str)
CompilationId = NewType("CompilationId", str)
ArtifactId = NewType("ArtifactId", str)
DeviceId = NewType("DeviceId", str)
RunId = NewType("RunId", str)
QuantizationId = NewType("QuantizationId", str)
TuningId = NewType("TuningId", str)

QUANTIZATION_PREFIX = "qnt_"
"""What ids of quantizations begin with."""

TUNING_PREFIX = "tun_"
"""What ids of tunings begin with."""

RunOn = Literal["none", "any", "all"] | tuple[str, ...]
"""Which devices run the artifacts: none, one each, every compatible one, or these ids."""

FINAL_JOB = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED})
FINAL_RUN = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.SKIPPED})


class _Resource(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Model(_Resource):
    """An uploaded model."""

    id: ModelId
    name: str
    format: str
    sha256: str
    size_bytes: int
    signature: ModelSignature
    created_at: str
    derived_from: ModelOrigin | None = None


class Dataset(_Resource):
    """An uploaded evaluation set."""

    id: DatasetId
    sha256: str
    size_bytes: int
    sample_count: int
    has_labels: bool


class CompilationRequest(BaseModel):
    """Body of `POST /v1/compilations`."""

    model_config = ConfigDict(frozen=True)

    model_id: ModelId
    levels: tuple[int, ...]
    abis: tuple[Abi, ...] = (Abi.ARM64_V8A,)
    dataset_id: DatasetId | None = None
    options: CompileOptions = CompileOptions()
    run_on: RunOn = "none"


class QuantizationRequest(BaseModel):
    """Body of `POST /v1/quantizations`."""

    model_config = ConfigDict(frozen=True)

    model_id: ModelId
    dataset_id: DatasetId
    options: QuantizeOptions = QuantizeOptions()


class Quantization(_Resource):
    """A quantize request, how far it is, and what came of it."""

    id: QuantizationId
    model: Model
    options: QuantizeOptions
    status: JobStatus
    stage: str | None = None
    done: int = 0
    total: int = 0
    error: Problem | None = None
    cached: bool = False
    result: Model | None = None
    result_dataset_id: DatasetId | None = None
    quantized_count: int | None = None
    operation_count: int | None = None
    cost: QuantizationCost | None = None


class RunDevice(_Resource):
    """The phone of a run, as listed with it."""

    id: DeviceId
    name: str
    simulated: bool = False


class TuningRequest(BaseModel):
    """Body of `POST /v1/tunings`."""

    model_config = ConfigDict(frozen=True)

    model_id: ModelId
    options: TuneOptions = TuneOptions()


class TuningRecord(_Resource):
    """What was measured of one kernel."""

    id: str
    signature: str
    kernel: str
    calls: int
    is_kept: bool
    simulated: bool = False
    before: KernelTiming
    after: KernelTiming | None = None
    tried: int


class Tuning(_Resource):
    """A tune request, how far it is, and what came of it."""

    id: TuningId
    model: Model
    options: TuneOptions
    status: JobStatus
    stage: str | None = None
    done: int = 0
    total: int = 0
    error: Problem | None = None
    abi: Abi | None = None
    machine: str | None = None
    device: RunDevice | None = None
    kernel_count: int | None = None
    known_count: int | None = None
    before: KernelTiming | None = None
    after: KernelTiming | None = None
    records: tuple[TuningRecord, ...] = ()


class ArtifactRef(_Resource):
    """An artifact as listed with its compilation."""

    id: ArtifactId


class RunRef(_Resource):
    """A run as listed with its compilation."""

    id: RunId
    status: RunStatus


class Compilation(_Resource):
    """A compile request and how far it is."""

    id: CompilationId
    status: JobStatus
    stage: str | None = None
    done: int = 0
    total: int = 0
    error: Problem | None = None
    cached: bool = False
    artifacts: tuple[ArtifactRef, ...] = ()
    runs: tuple[RunRef, ...] = ()

    def finished_runs(self) -> frozenset[RunId]:
        """Runs that are over; in the answer to a request these are an earlier request's."""
        return frozenset(run.id for run in self.runs if run.status in FINAL_RUN)


class RuntimeBundle(_Resource):
    """What a device of a target needs to run packages."""

    id: str
    target: str
    sha256: str
    size_bytes: int
    description: RuntimeBundleDescription
    created_at: str


class Artifact(_Resource):
    """One built target."""

    id: ArtifactId
    compilation_id: CompilationId
    feature_level: int
    abi: Abi
    manifest: Manifest
    size_bytes: int


class Device(_Resource):
    """A phone of the farm."""

    id: DeviceId
    state: DeviceState
    description: DeviceDescription
    last_seen_at: str | None = None
    agent_name: str = ""


class Run(_Resource):
    """One artifact on one device."""

    id: RunId
    artifact_id: ArtifactId
    device: RunDevice | None = None
    status: RunStatus
    attempt: int = 0
    measurement: RunMeasurement | None = None
    error: Problem | None = None


class Event(_Resource):
    """One server-sent event of a compilation; `id` is its sequence number."""

    id: str
    kind: str
    data: dict[str, Any]


class Result(_Resource):
    """One line of the result table: an artifact, and a run of it where there is one."""

    artifact: Artifact
    run: Run | None = None


class Explanation(_Resource):
    """The operation report of an artifact."""

    artifact: Artifact
    report: ExplanationReport
