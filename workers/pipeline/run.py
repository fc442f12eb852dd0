"""A plan carried out: every stage timed and reported, results in the job's folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import tvm

from service.contracts.artifacts import ExplanationReport, LevelCoverage, Manifest, PartRole
from service.contracts.jobs import (
    BuiltArtifact,
    CompileOptions,
    CompileOutcome,
    CompileTarget,
    EvaluationSet,
    Precision,
    Stage,
    StageEvent,
)
from service.contracts.targets import (
    MAX_FEATURE_LEVEL,
    MIN_FEATURE_LEVEL,
    Abi,
    CpuVariant,
    variants_of,
)
from workers.backends.base import Backend
from workers.backends.registry import make_backend
from workers.pipeline.blobs import BlobFolder
from workers.pipeline.explain import coverage_of
from workers.pipeline.libraries import Libraries, LibraryBuilder
from workers.pipeline.plan import Plan
from workers.pipeline.stages.codegen import codegen
from workers.pipeline.stages.ingest import IngestedModel, ingest
from workers.pipeline.stages.partition import Partition, partition
from workers.pipeline.stages.reference import evaluate, samples_for

Report = Callable[[StageEvent], None]


def run(plan: Plan, work_dir: Path, report: Report) -> CompileOutcome:
    """Build everything a plan asks for.

    Args:
        plan: from `workers.pipeline.plan.plan`.
        work_dir: the job's folder; blobs/ is filled, scratch files are removed.
        report: called with every finished step.

    Raises:
        NnfarmError: the first thing that cannot be done, with nothing half-delivered.
    """
    return _Run(plan, work_dir, report).run()


@dataclass(frozen=True)
class _Split:
    """One level's partition and the backend that claimed it and can encode it."""

    backend: Backend
    partition: Partition

    def with_coverage(self, what_if: tuple[LevelCoverage, ...]) -> _Split:
        report = self.partition.report.model_copy(update={"what_if": what_if})
        return replace(self, partition=replace(self.partition, report=report))


def _recorded(
    options: CompileOptions, model: IngestedModel, precision: Precision
) -> dict[str, str]:
    """Every option as the manifest shows it; the precision is the one that was used."""
    return {
        "exclude_ops": ",".join(options.exclude_ops),
        "exclude_nodes": ",".join(options.exclude_nodes),
        "only_nodes": ",".join(options.only_nodes),
        "accelerators": ",".join(options.accelerators),
        "min_subgraph_ops": str(options.min_subgraph_ops),
        "cpu_variants": ",".join(options.cpu_variants),
        "precision": precision,
        "precision_asked": options.precision,
        "input_shapes": ";".join(
            f"{tensor.name}={','.join(map(str, tensor.shape))}" for tensor in model.signature.inputs
        ),
    }


class _Run:
    def __init__(self, plan: Plan, work_dir: Path, report: Report) -> None:
        self._plan = plan
        self._scratch = work_dir / "scratch"
        self._scratch.mkdir(exist_ok=True)
        self._blobs = BlobFolder(work_dir / "blobs")
        self._report = report
        self._done = 0
        self._durations: dict[str, int] = {}
        self._builder = LibraryBuilder(plan.job.spec, plan.job.stub_dir, self._scratch, self._blobs)

    def run(self) -> CompileOutcome:
        started = time.perf_counter()
        job = self._plan.job
        with self._step(Stage.INGEST):
            model = ingest(job.model_path, job.spec.model_format, job.spec.options.input_shapes)
        with self._step(Stage.REFERENCE):
            samples = samples_for(model.signature, job.dataset_path)
            evaluation = evaluate(
                job.model_path, job.spec.model_format, model.signature, samples, self._blobs
            )
        with self._step(Stage.PARTITION):
            splits = self._partition(model)
        twins = {abi: self._twins(model.graph.module, abi) for abi in self._plan.abis}
        artifacts = [
            a for level in self._plan.levels for a in self._level(model, splits[level], twins)
        ]
        return self._outcome(model, evaluation, artifacts, started)

    def _outcome(
        self,
        model: IngestedModel,
        evaluation: EvaluationSet,
        artifacts: list[BuiltArtifact],
        started: float,
    ) -> CompileOutcome:
        return CompileOutcome(
            attempt=self._plan.job.spec.attempt,
            signature=model.signature,
            evaluation=evaluation,
            artifacts=tuple(artifacts),
            kernels={abi: tuple(sorted(found)) for abi, found in self._builder.kernels.items()},
            stage_durations_us=self._durations,
            child_duration_us=_micros(time.perf_counter() - started),
        )

    def _twins(self, module: tvm.IRModule, abi: Abi) -> Libraries:
        """The whole model on the CPU: one library an ABI and variant, the same at every level."""
        return self._build(module, PartRole.CPU_TWIN, abi, self._variants(abi), None)

    def _variants(self, abi: Abi) -> tuple[CpuVariant, ...]:
        return variants_of(abi, self._plan.job.spec.options.cpu_variants)

    def _build(
        self,
        module: tvm.IRModule,
        role: PartRole,
        abi: Abi,
        variants: tuple[CpuVariant, ...],
        level: int | None,
    ) -> Libraries:
        def step(stage: Stage, message: str) -> AbstractContextManager[None]:
            return self._step(stage, level, abi, message)

        return self._builder.build(module, role, abi, variants, step)

    def _partition(self, model: IngestedModel) -> dict[int, _Split]:
        """Every level, asked for or not: the reports say what the others would offload."""
        options = self._plan.job.spec.options
        splits = {}
        for level in range(MIN_FEATURE_LEVEL, MAX_FEATURE_LEVEL + 1):
            backend = make_backend(options.accelerators, options.precision)
            splits[level] = _Split(backend, partition(model.graph, backend, level, options))
        coverage = tuple(coverage_of(s.partition.report) for s in splits.values())
        return {level: split.with_coverage(coverage) for level, split in splits.items()}

    def _level(
        self, model: IngestedModel, chosen: _Split, twins: dict[Abi, Libraries]
    ) -> Iterator[BuiltArtifact]:
        job, spec = self._plan.job, self._plan.job.spec
        backend, split = chosen.backend, chosen.partition
        level = split.feature_level
        with self._step(Stage.CODEGEN, level):
            module, encoding = codegen(split, backend, job.player_library)
            report = self._blobs.add(split.report.model_dump_json(indent=1).encode())
            shared = [self._blobs.part(PartRole.REPORT, "report.json", report)]
            for name, data in encoding.files.items():
                shared.append(self._blobs.part(PartRole.WEIGHTS, name, self._blobs.add(data)))
        needed_level = max((r.needed_level for r in encoding.regions), default=0)
        for target in spec.targets:
            if target.feature_level != level:
                continue
            twin = twins[target.abi]
            library = twin.as_library()
            if encoding.regions:
                library = self._library(module, target, split.report)
            else:
                self._skip(2 * (1 + len(self._variants(target.abi))))
            with self._step(Stage.PACKAGE, level, target.abi):
                manifest = self._manifest(model, chosen, target, needed_level)
                added = {
                    "parts": (*library.parts, *twin.parts, *shared),
                    "cpu": (*library.cpu, *twin.cpu),
                    # A kernel of both libraries is named once.
                    "tuned_kernels": tuple(dict.fromkeys((*library.tuned, *twin.tuned))),
                }
                yield BuiltArtifact(target=target, manifest=manifest.model_copy(update=added))

    def _library(
        self, module: tvm.IRModule, target: CompileTarget, report: ExplanationReport
    ) -> Libraries:
        """The subgraphs, and what stays on the CPU; where nothing does, for all processors."""
        variants = self._variants(target.abi)
        if report.offloaded_count == report.operation_count:
            self._skip(2 * len(variants))
            variants = ()
        return self._build(module, PartRole.LIBRARY, target.abi, variants, target.feature_level)

    def _manifest(
        self, model: IngestedModel, chosen: _Split, target: CompileTarget, needed_level: int
    ) -> Manifest:
        spec, report = self._plan.job.spec, chosen.partition.report
        level = target.feature_level
        return Manifest(
            model_sha256=spec.model_sha256,
            model_name=spec.model_name,
            feature_level=level,
            needed_level=needed_level,
            abi=target.abi,
            signature=model.signature,
            subgraph_count=report.subgraph_count,
            offloaded_count=report.offloaded_count,
            operation_count=report.operation_count,
            parts=(),
            versions=self._plan.versions,
            nnapi_settings=spec.options.nnapi.to_manifest(),
            options=_recorded(spec.options, model, chosen.backend.precision_at(level)),
        )

    @contextmanager
    def _step(
        self, stage: Stage, level: int | None = None, abi: Abi | None = None, message: str = ""
    ) -> Iterator[None]:
        event = StageEvent(
            stage=stage,
            feature_level=level,
            abi=abi,
            done=self._done,
            total=self._plan.step_count,
            message=message,
        )
        self._report(event)
        started = time.perf_counter()
        yield
        duration_us = _micros(time.perf_counter() - started)
        self._durations[stage] = self._durations.get(stage, 0) + duration_us
        self._done += 1
        self._report(event.model_copy(update={"done": self._done, "duration_us": duration_us}))

    def _skip(self, count: int) -> None:
        self._done += count


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
