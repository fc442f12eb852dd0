"""Jobs of any kind, and the compile job: request, what a worker receives, reports and delivers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.contracts.artifacts import Manifest, Sha256
from service.contracts.errors import Problem
from service.contracts.kernels import KernelTuning, Signature, TunedKernel
from service.contracts.nnapi_settings import NnapiSettings
from service.contracts.targets import Abi, CpuVariant
from service.contracts.tensors import ModelSignature


class ModelFormat(StrEnum):
    """Model file formats the workers import."""

    ONNX = "onnx"
    TFLITE = "tflite"
    PYTORCH = "pytorch"


class Precision(StrEnum):
    """How the accelerator computes on float32 tensors."""

    FLOAT32 = "float32"
    RELAXED = "relaxed"  # float32 tensors, computed with float16's range and precision if faster
    FLOAT16 = "float16"  # float16 tensors inside a subgraph, float32 at its border


OperationType = Annotated[str, StringConstraints(max_length=100)]
AcceleratorName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
NodeName = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class CompileOptions(BaseModel):
    """Options that shape the artifacts; part of the cache key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exclude_ops: tuple[OperationType, ...] = Field(
        (), description="Original operation types kept on the CPU", examples=[["Softmax"]]
    )
    exclude_nodes: tuple[NodeName, ...] = Field(
        (), description="Original nodes kept on the CPU, by name", examples=[["/head/Softmax"]]
    )
    only_nodes: tuple[NodeName, ...] = Field(
        (),
        description="Original nodes that may be offloaded, by name; none named: all",
        examples=[["/features/conv1/Conv"]],
    )
    accelerators: tuple[AcceleratorName, ...] = Field(
        ("nnapi",),
        min_length=1,
        description="Accelerators to offload to, the most wanted first: each is offered what those "
        "before it left",
        examples=[["nnapi"]],
    )
    min_subgraph_ops: int = Field(
        1,
        ge=1,
        description="Subgraphs of fewer original operations are handed back to the CPU",
        examples=[3],
    )
    precision: Precision = Field(
        Precision.FLOAT32,
        description="How the accelerator computes on float32 tensors. `relaxed` needs feature "
        "level 2, `float16` level 3; below, the best that the level has is taken and the manifest "
        "says so",
    )
    cpu_variants: tuple[CpuVariant, ...] = Field(
        (),
        description="Processors beyond the ABI's baseline to build the code for the CPU for as "
        "well. A package then has a library more for each, and the device takes what it can run",
        examples=[["dotprod"]],
    )
    nnapi: NnapiSettings = Field(
        default_factory=NnapiSettings,
        description="How the player asks NNAPI to compile and run the packages",
    )
    input_shapes: dict[str, tuple[Annotated[int, Field(ge=1, le=2**31 - 1)], ...]] = Field(
        default_factory=dict,
        description="Shapes of inputs whose model leaves dimensions open, by input name. NNAPI "
        "needs them; an open batch dimension is taken as 1 where this does not say otherwise",
        examples=[{"image": [1, 3, 224, 224]}],
    )


class CompileTarget(BaseModel):
    """One artifact to build."""

    model_config = ConfigDict(frozen=True)

    feature_level: int
    abi: Abi


class JobStatus(StrEnum):
    """Life of a job of any kind. `succeeded` and `failed` are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Stage(StrEnum):
    """Stages of each kind of job, in order."""

    # compilations
    INGEST = "ingest"
    REFERENCE = "reference"  # the original model on the evaluation inputs, by its own runtime
    PARTITION = "partition"
    CODEGEN = "codegen"
    BUILD = "build"
    LINK = "link"
    PACKAGE = "package"
    # quantizations
    PREPARE = "prepare"  # checks, shapes, constants folded, batch norms absorbed
    CALIBRATE = "calibrate"  # the float model on the dataset: the range of every tensor
    QUANTIZE = "quantize"
    MEASURE = "measure"  # both models on the dataset: what quantization costs
    # tunings: ingest, then
    TUNE = "tune"  # each kernel by itself; then measure, the whole model before and after
    BENCH = "bench"  # on a device, in place of measure: what `tune` has built is measured there


class JobTicket(BaseModel):
    """What a worker gets with every claimed job; token and attempt fence its later calls."""

    attempt: int
    job_token: str


class JobSpec(JobTicket):
    """What a worker gets when it claims a compilation."""

    compilation_id: str
    model_name: str
    model_format: ModelFormat
    model_sha256: Sha256
    model_size_bytes: int
    dataset_sha256: Sha256 | None
    targets: tuple[CompileTarget, ...]
    options: CompileOptions
    tuned: tuple[TunedKernel, ...] = Field(
        (), description="Schedules that measured faster than the compiler's own, for its targets"
    )


class StageEvent(BaseModel):
    """Progress of a job. `duration_us` is set when the stage is over."""

    stage: Stage
    feature_level: int | None = None
    abi: Abi | None = None
    done: int = Field(description="Steps of the whole job that are over")
    total: int = Field(description="Steps of the whole job")
    duration_us: int | None = None
    message: str = ""
    tuned: KernelTuning | None = Field(None, description="Of a tuning: a kernel that is done")


class EvaluationSet(BaseModel):
    """Inputs a run feeds, and the original model's answers to them.

    Both blobs are safetensors files. Each input tensor has the model's name and one more leading
    dimension, the samples; sample i of every tensor makes one inference. `expected` holds the
    outputs by the original runtime (ONNX Runtime, LiteRT, PyTorch) in the same form.
    """

    model_config = ConfigDict(frozen=True)

    sample_count: int
    inputs_sha256: Sha256
    expected_sha256: Sha256
    labels: tuple[int, ...] | None = Field(None, description="Class index a sample, where known")
    original_top1: float | None = Field(
        None, description="Share of samples whose largest first output is the label, 0 to 1"
    )
    synthetic: bool = Field(description="Inputs were drawn at random: no dataset was given")


class BuiltArtifact(BaseModel):
    """One finished target. Its parts have been uploaded before."""

    target: CompileTarget
    manifest: Manifest


class JobOutcome(BaseModel):
    """What a worker posts when a job of any kind is done; its blobs have been uploaded before."""

    attempt: int
    stage_durations_us: dict[str, int] = Field(description="Sum by stage name")
    child_duration_us: int = Field(description="Wall time of the sandboxed child process")

    def blob_sizes(self) -> dict[Sha256, int | None]:
        """Every blob the outcome names, with its size in bytes where the outcome says it."""
        raise NotImplementedError


class CompileOutcome(JobOutcome):
    """What a worker posts when all targets are done."""

    signature: ModelSignature
    evaluation: EvaluationSet
    artifacts: tuple[BuiltArtifact, ...]
    kernels: dict[Abi, tuple[Signature, ...]] = Field(
        default_factory=dict, description="CPU kernels that would have taken a tuned schedule"
    )

    def blob_sizes(self) -> dict[Sha256, int | None]:
        """The evaluation set and the parts of all artifacts."""
        sizes: dict[Sha256, int | None] = {
            self.evaluation.inputs_sha256: None,
            self.evaluation.expected_sha256: None,
        }
        for artifact in self.artifacts:
            sizes.update({part.sha256: part.size_bytes for part in artifact.manifest.parts})
        return sizes


class JobFailure(BaseModel):
    """What a worker posts when the job cannot be done."""

    attempt: int
    problem: Problem
    log_tail: str = Field("", description="Last lines of the child's own output, at most 16 KiB")
