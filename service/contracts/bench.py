"""Benches: kernels in several schedules, built by a worker, measured against each other on a phone.

A worker cannot measure there, so it draws the schedules and links them; an agent runs them with
`nnfarm_runner --bench`, and the service makes records of what that says.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from service.contracts.artifacts import Sha256
from service.contracts.kernels import KernelTiming, Signature, Trace
from service.contracts.targets import Abi

MAX_CANDIDATES = 32
MAX_KERNELS = 64

ElementType = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,20}$")]


def ruled_function() -> str:
    """Name, in a kernel's library, of the function that the rules have scheduled."""
    return "ruled"


def candidate_function(candidate: int) -> str:
    """Name, in a kernel's library, of the function of the candidate with this number."""
    return f"candidate_{candidate}"


class BenchTensor(BaseModel):
    """One argument of a kernel."""

    model_config = ConfigDict(frozen=True)

    shape: tuple[Annotated[int, Field(ge=0)], ...] = Field(max_length=16)
    dtype: ElementType


class BenchLibrary(BaseModel):
    """The functions of one kernel, linked for the bench's ABI."""

    model_config = ConfigDict(frozen=True)

    path: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,40}\.so$")]
    sha256: Sha256
    size_bytes: int = Field(ge=0)


class BenchKernel(BaseModel):
    """One kernel: by the schedule rules, and in other schedules that nobody has measured yet.

    Every function of the library takes all tensors, inputs first, and returns nothing.
    """

    model_config = ConfigDict(frozen=True)

    signature: Signature
    kernel: str = Field(max_length=500, description="Its name in the model that is tuned")
    calls: int = Field(ge=1, description="How often that model calls it")
    tensors: tuple[BenchTensor, ...] = Field(max_length=256)
    library: BenchLibrary
    candidates: tuple[Trace, ...] = Field(
        min_length=1, max_length=MAX_CANDIDATES, description="By the numbers of their functions"
    )


class Bench(BaseModel):
    """Kernels to be measured on a device, those that likely take most of a model's time first."""

    model_config = ConfigDict(frozen=True)

    abi: Abi
    kernels: tuple[BenchKernel, ...] = Field(max_length=MAX_KERNELS)
    time_limit_ms: int = Field(ge=1, description="For measuring, on the device")

    @model_validator(mode="after")
    def _check_distinct(self) -> Bench:
        for found in (
            [kernel.signature for kernel in self.kernels],
            [kernel.library.path for kernel in self.kernels],
        ):
            if len(set(found)) != len(found):
                raise ValueError("two kernels of the bench have the same signature or library")
        return self

    def without(self, signatures: frozenset[Signature]) -> Bench:
        """The bench of the other kernels."""
        left = tuple(kernel for kernel in self.kernels if kernel.signature not in signatures)
        return self.model_copy(update={"kernels": left})


class BenchedKernel(BaseModel):
    """What the runner found of one kernel."""

    model_config = ConfigDict(frozen=True)

    signature: Signature
    before: KernelTiming = Field(description="By the schedule rules")
    after: KernelTiming | None = Field(
        None, description="By the best candidate, interleaved with `before`; null: none was near"
    )
    best: int | None = Field(
        None, ge=0, description="That candidate where it measured faster; null: the rules' stays"
    )
    rounds: int = Field(ge=1, description="Of the last, interleaved measurement")
    tried: int = Field(ge=0, description="Candidates that ran and computed the same")
    duration_us: int = Field(ge=0)


class BenchReport(BaseModel):
    """Kernels that an agent's runner is done with; each is kept as it comes."""

    fence: int
    kernels: tuple[BenchedKernel, ...] = Field(max_length=MAX_KERNELS)
