"""`nnfarm tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.client.session import Session
from service.client.tuning import TuneCommand, show_tuning
from service.contracts.errors import NnfarmError
from service.contracts.tuning import LARGEST_BUDGET_S, LEAST_BUDGET_S, TuneOptions, TuneTarget


def tune(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(help="ONNX, TFLite or PyTorch (.pt2).", exists=True, dir_okay=False)
    ],
    target: Annotated[
        str, typer.Option(help="Where kernels are measured: host, the worker's machine.")
    ] = TuneTarget.HOST.value,
    time_budget: Annotated[
        int,
        typer.Option(
            metavar="S", help="Seconds to spend.", min=LEAST_BUDGET_S, max=LARGEST_BUDGET_S
        ),
    ] = TuneOptions().time_budget_s,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the result.")] = True,
) -> None:
    """Look for faster CPU kernels of a model, for all later compilations."""
    session: Session = context.obj
    options = TuneOptions(target=_target(target), time_budget_s=time_budget)
    command = TuneCommand(model, options)
    with session.client() as client:
        started = command.start(client, session.terminal)
        if not wait:
            content = {"tuning": started.model_dump(mode="json")}
            session.terminal.show(content, f"{started.id} {started.status.value}")
            return
        done = command.wait(client, session.terminal, started)
    raise typer.Exit(show_tuning(session.terminal, done))


def _target(word: str) -> TuneTarget:
    if word in list(TuneTarget):
        return TuneTarget(word)
    raise NnfarmError(
        "tune.unsupported_target",
        f"Kernels cannot be measured on {word!r}: only on {', '.join(TuneTarget)}, the worker's "
        "machine. A worker on an arm64 machine tunes for arm64-v8a phones.",
        target=word,
    )
