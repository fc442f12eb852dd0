"""The plan of a compilation: everything that will be done, validated before anything is."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from service.contracts.errors import NnfarmError
from service.contracts.jobs import JobSpec
from service.contracts.targets import (
    MAX_FEATURE_LEVEL,
    MIN_FEATURE_LEVEL,
    Abi,
    require_usable,
    variants_of,
)
from workers.backends.registry import require_known


class JobInput(BaseModel):
    """job.json: what the worker puts into the child's folder. The spec's token is blank."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())

    spec: JobSpec
    model_path: Path
    dataset_path: Path | None
    stub_dir: Path
    player_library: Path


class Plan(BaseModel):
    """What one job does; prints as JSON.

    Attributes:
        job: the input it was made from.
        levels: feature levels, ascending, each partitioned and lowered once.
        abis: ABIs, each with one CPU twin that all levels share.
        step_count: steps that progress is counted in.
        versions: everything whose version shapes the artifacts.
    """

    model_config = ConfigDict(frozen=True)

    job: JobInput
    levels: tuple[int, ...]
    abis: tuple[Abi, ...]
    step_count: int
    versions: dict[str, str]


_VERSIONED = ("nnfarm", "apache-tvm", "apache-tvm-ffi", "onnx", "onnxruntime", "numpy", "ziglang")


def plan(job: JobInput) -> Plan:
    """Validate a job and lay out its steps.

    Raises:
        NnfarmError: `compile.bad_level`, `compile.bad_option`.
    """
    if not job.spec.targets:
        raise NnfarmError("compile.bad_option", "At least one level and one ABI are needed.")
    levels = tuple(sorted({target.feature_level for target in job.spec.targets}))
    for level in levels:
        if not MIN_FEATURE_LEVEL <= level <= MAX_FEATURE_LEVEL:
            raise NnfarmError(
                "compile.bad_level",
                f"Feature level {level} is not one of {MIN_FEATURE_LEVEL} to {MAX_FEATURE_LEVEL}.",
                feature_level=level,
            )
    require_known(job.spec.options.accelerators)
    abis = tuple(abi for abi in Abi if any(target.abi is abi for target in job.spec.targets))
    require_usable(job.spec.options.cpu_variants, abis)
    return Plan(
        job=job,
        levels=levels,
        abis=abis,
        step_count=_steps(job.spec, levels, abis),
        versions={name: _version(name) for name in _VERSIONED},
    )


def _steps(spec: JobSpec, levels: tuple[int, ...], abis: tuple[Abi, ...]) -> int:
    """Every step that `run` reports or skips."""
    fixed = 3  # ingest, reference, partition
    per_library = 2  # build, link; of the twin and of each level's library
    libraries = {abi: 1 + len(variants_of(abi, spec.options.cpu_variants)) for abi in abis}
    built = sum(libraries.values()) + sum(libraries[target.abi] for target in spec.targets)
    packages = len(spec.targets)
    return fixed + len(levels) + per_library * built + packages


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "source"  # running from a checkout that was not installed
