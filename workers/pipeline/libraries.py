"""Libraries of a package: one module built and linked for an ABI and the variants asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import tvm

from service.contracts.artifacts import CpuPart, Part, PartRole
from service.contracts.jobs import JobSpec, Stage
from service.contracts.kernels import AppliedTuning, Signature
from service.contracts.targets import CPU_REQUIREMENTS, Abi, CpuVariant
from workers.backends.cpu.tuned import Tunings
from workers.pipeline.blobs import BlobFolder
from workers.pipeline.stages.build import build, link

_NAMES = {PartRole.LIBRARY: "model", PartRole.CPU_TWIN: "model_cpu"}

Step = Callable[[Stage, str], AbstractContextManager[None]]
"""Times and reports a stage; the text says which variant."""


@dataclass(frozen=True)
class Libraries:
    """The code of one role: for every device of the ABI, then for its variants, faster ones last.

    Attributes:
        parts: the linked files.
        cpu: what the code of each takes.
        tuned: records that kernels of the first were scheduled by.
    """

    parts: tuple[Part, ...]
    cpu: tuple[CpuPart, ...]
    tuned: tuple[AppliedTuning, ...]

    def as_library(self) -> Libraries:
        """The twin in the place of the library with the subgraphs, where there are none."""
        paths = [_path(PartRole.LIBRARY, part.cpu_variant) for part in self.parts]
        return replace(
            self,
            parts=tuple(
                part.model_copy(update={"role": PartRole.LIBRARY, "path": path})
                for part, path in zip(self.parts, paths, strict=True)
            ),
            cpu=tuple(
                cpu.model_copy(update={"path": path})
                for cpu, path in zip(self.cpu, paths, strict=True)
            ),
        )


class LibraryBuilder:
    """Builds and links the libraries of one job.

    Args:
        spec: the job's tuned kernels are used by the code for the baseline, which they were
            measured with.
        stub_dir: libraries of Android to link against.
        scratch: a folder for what is linked.
        blobs: where the results go.
    """

    def __init__(self, spec: JobSpec, stub_dir: Path, scratch: Path, blobs: BlobFolder) -> None:
        self._spec = spec
        self._stub_dir = stub_dir
        self._scratch = scratch
        self._blobs = blobs
        self.kernels: dict[Abi, set[Signature]] = {}
        """Kernels that would have taken a tuned schedule."""

    def build(
        self,
        module: tvm.IRModule,
        role: PartRole,
        abi: Abi,
        variants: Iterable[CpuVariant],
        step: Step,
    ) -> Libraries:
        """One library for the ABI, and one for each variant that comes out different.

        Float code is the same for some variants: they differ in integer and float16 arithmetic.

        Raises:
            NnfarmError: of the stages.
        """
        tunings = Tunings(one for one in self._spec.tuned if one.abi is abi)
        first = self._one(module, role, abi, None, tunings, step)
        self.kernels.setdefault(abi, set()).update(tunings.signatures)
        found = {first[0].sha256: first}
        for variant in variants:
            part, cpu = self._one(module, role, abi, variant, Tunings(), step)
            found.setdefault(part.sha256, (part, cpu))
        parts, cpus = zip(*found.values(), strict=True)
        return Libraries(parts, cpus, tuple(tunings.applied))

    def _one(
        self,
        module: tvm.IRModule,
        role: PartRole,
        abi: Abi,
        variant: CpuVariant | None,
        tunings: Tunings,
        step: Step,
    ) -> tuple[Part, CpuPart]:
        with step(Stage.BUILD, variant or ""):
            built = build(module, abi, variant, tunings)
        # The file's name becomes the soname; the same for all, or no two levels would share, nor
        # variants that make no difference.
        library = self._scratch / _path(role, None)
        with step(Stage.LINK, variant or ""):
            link(built.executable.vm, abi, self._stub_dir, library)
            sha256 = self._blobs.add_file(library)
        features = CPU_REQUIREMENTS[variant].features if variant else ()
        part = self._blobs.part(role, _path(role, variant), sha256).model_copy(
            update={"cpu_variant": variant, "cpu_features": features}
        )
        cpu = CpuPart(
            path=part.path,
            activation_bytes=built.executable.activation_bytes,
            unscheduled_kernels=built.unscheduled,
        )
        return part, cpu


def _path(role: PartRole, variant: CpuVariant | None) -> str:
    return f"{_NAMES[role]}.{variant}.so" if variant else f"{_NAMES[role]}.so"
