"""Artifacts: a manifest over content-addressed parts, and the explanation report."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.kernels import AppliedTuning
from service.contracts.targets import Abi, CpuVariant
from service.contracts.tensors import ModelSignature

Sha256 = str
"""64 lower-case hexadecimal digits."""


class PartRole(StrEnum):
    """What a part is for; see docs/reference/package.md."""

    LIBRARY = "library"  # model.so: NNAPI subgraphs plus what stays on the CPU
    CPU_TWIN = "cpu_twin"  # model_cpu.so: the whole model on the CPU, same inputs and outputs
    WEIGHTS = "weights"  # weights.bin: constants of the NNAPI subgraphs; one file an accelerator
    REPORT = "report"  # report.json: ExplanationReport


class Part(BaseModel):
    """One content-addressed file of a package."""

    model_config = ConfigDict(frozen=True)

    role: PartRole
    path: str = Field(description="File name inside the package", examples=["model.so"])
    sha256: Sha256
    size_bytes: int
    cpu_variant: CpuVariant | None = Field(
        None,
        description="Built for these processors; null: for every device of the ABI. Of the parts "
        "of a role the runtime takes the last one that the device can run",
    )
    cpu_features: tuple[str, ...] = Field(
        (),
        description="What the processor must have, named as in Linux's /proc/cpuinfo",
        examples=[["asimdhp", "asimddp"]],
    )


class Rejection(BaseModel):
    """Why one operation stays on the CPU."""

    model_config = ConfigDict(frozen=True)

    code: str = Field(examples=["nnapi.needs_level"])
    sentence: str = Field(examples=["TRANSPOSE needs NNAPI feature level 2; level 1 was asked."])
    needed_level: int | None = Field(
        None, description="The least level at which NNAPI takes it; null where none does."
    )


class OperationPlacement(StrEnum):
    """Where an operation of the normalised graph runs."""

    NNAPI = "nnapi"
    CPU = "cpu"
    FOLDED = "folded"  # computed at compile time, or absorbed into another operation


class OperationReport(BaseModel):
    """The answer to "where does this operation run, and why" for one operation."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="The original model's node name", examples=["/conv1/Conv"])
    op_type: str = Field(description="The original model's operation type", examples=["Conv"])
    placement: OperationPlacement
    subgraph: int | None = Field(None, description="Index of the NNAPI subgraph that holds it")
    accelerator: str | None = Field(
        None, description="The accelerator of that subgraph", examples=["nnapi"]
    )
    nnapi_operations: tuple[str, ...] = Field((), examples=[["CONV_2D"]])
    rejection: Rejection | None = None
    note: str | None = Field(
        None,
        description="What the artifact does otherwise than the model's own runtime may",
        examples=["Its state begins with zeros in every run."],
    )
    macs: int = Field(0, description="Multiply-accumulates of one inference")
    size_bytes: int = Field(
        0, description="Bytes of the tensors it reads and writes, constants too"
    )


class LevelCoverage(BaseModel):
    """What one feature level would offload; computed without building anything."""

    model_config = ConfigDict(frozen=True)

    feature_level: int
    offloaded_count: int
    subgraph_count: int
    offloaded_macs: int
    offloaded_bytes: int


class ExplanationReport(BaseModel):
    """One level's report: every operation of the model, in graph order.

    Totals count the operations that are computed at run time (placement nnapi or cpu); folded ones
    are listed but not counted.
    """

    feature_level: int
    operations: tuple[OperationReport, ...]
    offloaded_count: int
    operation_count: int
    subgraph_count: int
    macs: int = Field(0, description="Multiply-accumulates of the whole model")
    offloaded_macs: int = 0
    size_bytes: int = Field(0, description="Bytes all operations read and write")
    offloaded_bytes: int = 0
    what_if: tuple[LevelCoverage, ...] = Field(
        (), description="The same model, with the same options, at every feature level"
    )


class CpuPart(BaseModel):
    """What the code for the CPU in one library of a package takes."""

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="The library", examples=["model_cpu.so"])
    activation_bytes: int = Field(
        description="Memory of all intermediate tensors, reused memory counted once; without "
        "inputs, outputs and what NNAPI takes",
        examples=[8635392],
    )
    unscheduled_kernels: tuple[str, ...] = Field(
        (), description="Kernels that no schedule covers: correct, in scalar code and slow"
    )


class Manifest(BaseModel):
    """manifest.json of a package: everything needed to run it and to build it again."""

    format: str = "nnfarm.package"
    format_version: int = 1
    model_sha256: Sha256
    model_name: str
    feature_level: int
    needed_level: int = Field(description="Least feature level the NNAPI subgraphs use; 0: none")
    abi: Abi
    signature: ModelSignature
    entry: str = "main"
    subgraph_count: int
    offloaded_count: int
    operation_count: int
    parts: tuple[Part, ...]
    versions: dict[str, str] = Field(description="Compiler and library versions by name")
    options: dict[str, str] = Field(description="Every option that shaped the artifact")
    nnapi_settings: dict[str, str] = Field(
        default_factory=dict,
        description="How the player asks NNAPI; see docs/reference/runner.md",
        examples=[{"preference": "low-power"}],
    )
    cpu: tuple[CpuPart, ...] = Field((), description="The code for the CPU, by library")
    tuned_kernels: tuple[AppliedTuning, ...] = Field(
        (), description="CPU kernels with a schedule from the tuning database"
    )
