"""`nnfarm show` and `nnfarm cancel`, of every kind of job."""

from __future__ import annotations

from typing import Annotated

import typer

from service.client.compiling import show_results
from service.client.messages import (
    QUANTIZATION_PREFIX,
    TUNING_PREFIX,
    Compilation,
    CompilationId,
    Quantization,
    QuantizationId,
    Tuning,
    TuningId,
)
from service.client.quantizing import show_quantization
from service.client.session import Session
from service.client.tables import coverage_table, operation_table
from service.client.tuning import show_tuning


def show(
    context: typer.Context,
    job_id: Annotated[
        str,
        typer.Argument(help="Id of a compilation (cmp_), quantization (qnt_) or tuning (tun_)."),
    ],
    ops: Annotated[
        bool, typer.Option("--ops", help="Every operation: where it runs, and why.")
    ] = False,
) -> None:
    """Show a compilation's artifacts and runs, what a quantization costs or a tuning found."""
    session: Session = context.obj
    with session.client() as client:
        if job_id.startswith(QUANTIZATION_PREFIX):
            quantization = client.quantizations.get(QuantizationId(job_id))
            raise typer.Exit(show_quantization(client, session.terminal, quantization))
        if job_id.startswith(TUNING_PREFIX):
            raise typer.Exit(show_tuning(session.terminal, client.tunings.get(TuningId(job_id))))
        compilation = client.compilation(CompilationId(job_id))
        if not ops:
            raise typer.Exit(show_results(client, session.terminal, compilation, None))
        reports = [client.explanation(client.artifact(ref.id)) for ref in compilation.artifacts]
        content = {"reports": [report.model_dump(mode="json") for report in reports]}
        coverage = [coverage_table(report) for report in reports[:1]]
        session.terminal.show(content, *map(operation_table, reports), *coverage)


def cancel(
    context: typer.Context,
    job_id: Annotated[
        str,
        typer.Argument(help="Id of a compilation (cmp_), quantization (qnt_) or tuning (tun_)."),
    ],
) -> None:
    """End a job that is not over, for all who asked for it."""
    session: Session = context.obj
    with session.client() as client:
        job: Compilation | Quantization | Tuning
        if job_id.startswith(QUANTIZATION_PREFIX):
            job = client.quantizations.cancel(QuantizationId(job_id))
        elif job_id.startswith(TUNING_PREFIX):
            job = client.tunings.cancel(TuningId(job_id))
        else:
            job = client.cancel(CompilationId(job_id))
        session.terminal.show(job.model_dump(mode="json"), f"{job.id} was cancelled")
