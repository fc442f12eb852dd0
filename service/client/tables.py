"""Tables for a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from service.client.messages import ArtifactId, Device, Explanation, Model, Result
from service.contracts.runs import RunMeasurement

Paths = Mapping[ArtifactId, Path]
_NONE = "-"


def result_table(results: list[Result], paths: Paths) -> Table:
    """One line an artifact and run: where it runs, how accurate, how fast."""
    table = Table()
    for name in ("level", "ABI"):
        table.add_column(name, no_wrap=True)
    for name in ("offloaded", "subgraphs", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("top-1 original", "top-1 artifact", "largest error", "median", "p90"):
        table.add_column(name, justify="right")
    table.add_column("device")
    table.add_column("artifact", overflow="fold")
    for result in results:
        manifest = result.artifact.manifest
        path = paths.get(result.artifact.id)
        table.add_row(
            str(result.artifact.feature_level),
            result.artifact.abi.value,
            f"{manifest.offloaded_count}/{manifest.operation_count}",
            str(manifest.subgraph_count),
            size_text(result.artifact.size_bytes),
            *_measured_cells(result.run.measurement if result.run else None),
            _device_cell(result),
            path.name if path else result.artifact.id,
        )
    return table


def _measured_cells(measurement: RunMeasurement | None) -> tuple[str, str, str, str, str]:
    if measurement is None:
        return (_NONE,) * 5
    accuracy, latency = measurement.accuracy, measurement.latency
    mark = " simulated" if latency.simulated else ""
    if not measurement.valid:
        mark += " (not valid)"
    return (
        share_text(accuracy.original_top1),
        share_text(accuracy.top1),
        f"{accuracy.max_abs_error:.2g}",
        f"{latency.median_us / 1000:.3f} ms{mark}",
        f"{latency.p90_us / 1000:.3f} ms{mark}",
    )


def _device_cell(result: Result) -> str:
    if result.run is None:
        return _NONE
    name = result.run.device.name if result.run.device else _NONE
    if result.run.measurement is None:
        return f"{name} ({result.run.status.value})"
    measurement = result.run.measurement
    code = f", {measurement.cpu_variant}" if measurement.cpu_variant else ""
    return f"{name} ({measurement.engine}{code})"


def share_text(value: float | None) -> str:
    """A share in percent; a dash where there is none."""
    return _NONE if value is None else f"{100 * value:.1f} %"


def size_text(size_bytes: int) -> str:
    """A size in kB or MB (powers of ten)."""
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1000:.1f} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"


def count_text(count: int) -> str:
    """A count in thousands or millions."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count)


def coverage_table(explanation: Explanation) -> Table:
    """One line a feature level: what it offloads, or would if it had been asked for."""
    report = explanation.report
    table = Table(title="the same model at every feature level", title_justify="left")
    for name in ("level", "operations", "subgraphs", "MACs", "bytes moved"):
        table.add_column(name)
    for level in report.what_if:
        table.add_row(
            str(level.feature_level),
            f"{level.offloaded_count}/{report.operation_count}",
            str(level.subgraph_count),
            _part(level.offloaded_macs, report.macs),
            _part(level.offloaded_bytes, report.size_bytes),
        )
    return table


def _part(some: int, whole: int) -> str:
    return share_text(some / whole) if whole else _NONE


def operation_table(explanation: Explanation) -> Table:
    """One line an operation of the model: where it runs, and why not on NNAPI."""
    artifact, report = explanation.artifact, explanation.report
    table = Table(
        title=f"level {artifact.feature_level} {artifact.abi.value}: "
        f"{report.offloaded_count} of {report.operation_count} operations offloaded",
        title_justify="left",
    )
    for name in ("operation", "type", "runs on", "MACs", "NNAPI operations", "reason"):
        table.add_column(name, overflow="fold")
    for operation in report.operations:
        where = operation.placement.value
        if operation.subgraph is not None:
            where += f" #{operation.subgraph}"
        reason = operation.rejection
        table.add_row(
            operation.name,
            operation.op_type,
            where,
            count_text(operation.macs) if operation.macs else "",
            ", ".join(operation.nnapi_operations) or _NONE,
            f"{reason.sentence} ({reason.code})" if reason else "",
        )
    return table


def device_table(devices: list[Device]) -> Table:
    """One line a phone."""
    table = Table()
    for name in ("device", "name", "state", "ABIs, CPU", "level", "accelerators", "agent", "remark"):
        table.add_column(name, overflow="fold")
    for device in devices:
        about = device.description
        remark = about.reason_unusable or ("virtual phone" if about.simulated else "")
        table.add_row(
            device.id,
            about.name,
            device.state.value,
            ", ".join((*about.abis, *about.cpu_variants)),
            str(about.feature_level) if about.feature_level else "no NNAPI",
            ", ".join(f"{a.name} ({a.type}, level {a.feature_level})" for a in about.accelerators),
            device.agent_name,
            remark,
        )
    return table


def model_table(models: list[Model]) -> Table:
    """One line a model."""
    table = Table()
    for name in ("model", "name", "size", "inputs", "outputs", "SHA-256", "quantized from"):
        table.add_column(name, overflow="fold")
    for model in models:
        signature = model.signature
        table.add_row(
            model.id,
            model.name,
            size_text(model.size_bytes),
            ", ".join(f"{t.name} {t.dtype.value}{list(t.shape)}" for t in signature.inputs),
            ", ".join(f"{t.name} {t.dtype.value}{list(t.shape)}" for t in signature.outputs),
            model.sha256[:12],
            model.derived_from.model_id if model.derived_from else "",
        )
    return table
