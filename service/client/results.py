"""What a result means: thresholds, failures, and the numbers of one table line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from service.client.messages import Artifact, Result
from service.contracts.artifacts import Manifest, PartRole
from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.runs import Accuracy, RunStatus
from service.contracts.targets import CpuVariant, variants_of


class ExitCode(IntEnum):
    """What the command ends with."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INFRA = 3
    ACCURACY = 4


EXIT_CODE_HELP = """Exit codes: 0 all is well; 1 the job or a run failed; 2 wrong usage or
input the service refuses; 3 the service is not reachable or failed itself; 4 the accuracy is below
--min-agreement, above --max-error or --max-loss, or what they apply to was not measured."""


def exit_code_of(error: NnfarmError) -> ExitCode:
    """The exit code for an error a call ended with."""
    return ExitCode.USAGE if error.kind.error_class is ErrorClass.USER else ExitCode.INFRA


@dataclass(frozen=True)
class Thresholds:
    """Accuracy every artifact must keep; None does not ask.

    Attributes:
        min_agreement: least share of samples with the original's top-1 class, 0 to 1.
        max_error: largest absolute error of any output value.
    """

    min_agreement: float | None = None
    max_error: float | None = None

    @property
    def are_set(self) -> bool:
        """Whether anything is asked."""
        return self.min_agreement is not None or self.max_error is not None

    def violations(self, results: list[Result]) -> list[str]:
        """One sentence for every result that does not keep them."""
        if not self.are_set:
            return []
        sentences = list[str]()
        for result in results:
            measurement = result.run.measurement if result.run else None
            faults = self._faults(measurement.accuracy) if measurement else ["was not measured"]
            sentences += [f"{label_of(result)}: {fault}" for fault in faults]
        return sentences

    def _faults(self, accuracy: Accuracy) -> list[str]:
        faults = list[str]()
        if self.min_agreement is not None:
            if accuracy.agreement is None:
                faults.append("has no agreement: its first output has no classes")
            elif accuracy.agreement < self.min_agreement:
                faults.append(f"agreement {accuracy.agreement:.4f} is below {self.min_agreement}")
        if self.max_error is not None and not accuracy.max_abs_error <= self.max_error:
            # Written so that NaN counts as above.
            faults.append(f"largest error {accuracy.max_abs_error:g} is above {self.max_error}")
        if not all(output.matches_nan for output in accuracy.outputs):
            faults.append("has NaN or infinity where the original has none, or the reverse")
        return faults


def label_of(result: Result) -> str:
    """What a line speaks of: level, ABI and device."""
    artifact = result.artifact
    label = f"level {artifact.feature_level} {artifact.abi.value}"
    if result.run and result.run.device:
        label += f" on {result.run.device.name}"
    return label


def notes_on(result: Result) -> list[str]:
    """What a person must know beside the numbers: tuning, failures, skips, fallbacks, doubts."""
    run = result.run
    label = label_of(result)
    notes = list[str]()
    if tuned := result.artifact.manifest.tuned_kernels:
        notes.append(f"{label}: {len(tuned)} CPU kernels by tuned schedules, see its manifest")
    if same := _variants_without_difference(result.artifact.manifest):
        notes.append(f"{label}: code for {', '.join(same)} is the same as without, and left out")
    for cpu in result.artifact.manifest.cpu:
        if cpu.unscheduled_kernels:
            names = ", ".join(cpu.unscheduled_kernels)
            notes.append(f"{label}: slow, no CPU schedule in {cpu.path} for {names}")
    if run is None:
        return notes
    if run.error is not None:
        verb = "not run" if run.status is RunStatus.SKIPPED else run.status.value
        notes.append(f"{label}: {verb}: {run.error.detail} ({run.error.code})")
    if run.measurement is not None:
        for fallback in run.measurement.fallbacks:
            notes.append(f"{label}: fell back to the CPU: {fallback.detail} ({fallback.code})")
        if not run.measurement.valid:
            reasons = "; ".join(run.measurement.notes) or "no reason given"
            notes.append(f"{label}: the latency is not valid: {reasons}")
    return notes


def _variants_without_difference(manifest: Manifest) -> list[str]:
    asked = {name for name in manifest.options.get("cpu_variants", "").split(",") if name}
    built = {part.cpu_variant for part in manifest.parts if part.role is PartRole.CPU_TWIN}
    return [v for v in variants_of(manifest.abi, map(CpuVariant, asked)) if v not in built]


def has_failed_run(results: list[Result]) -> bool:
    """Whether a run failed; a skipped one (no such device attached) did not."""
    return any(result.run and result.run.status is RunStatus.FAILED for result in results)


def package_name(artifact: Artifact) -> str:
    """File name of an artifact's package."""
    # The model's name came from a user: nothing of it may leave the folder.
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", artifact.manifest.model_name).strip(".-") or "model"
    return f"{name}-level{artifact.feature_level}-{artifact.abi.value}.zip"
