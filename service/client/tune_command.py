"""`nnfarm tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from service.client.session import Session
from service.client.tuning import TuneCommand, show_tuning
from service.contracts.errors import NnfarmError
from service.contracts.tuning import HOST_TARGET, LARGEST_BUDGET_S, LEAST_BUDGET_S, TuneOptions


def tune(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(help="ONNX, TFLite or PyTorch (.pt2).", exists=True, dir_okay=False)
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="host|any|DEVICE_ID",
            help="Where kernels are measured: the worker's machine, any attached device, or one.",
        ),
    ] = HOST_TARGET,
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
    options = _options(target, time_budget)
    command = TuneCommand(model, options)
    with session.client() as client:
        started = command.start(client, session.terminal)
        if not wait:
            content = {"tuning": started.model_dump(mode="json")}
            session.terminal.show(content, f"{started.id} {started.status.value}")
            return
        done = command.wait(client, session.terminal, started)
    raise typer.Exit(show_tuning(session.terminal, done))


def _options(target: str, time_budget_s: int) -> TuneOptions:
    try:
        return TuneOptions(target=target, time_budget_s=time_budget_s)
    except ValidationError:  # the budget was checked as it was read
        raise NnfarmError(
            "tune.bad_option",
            f"--target is host, any or the id of a device (dev_...), not {target!r}.",
            target=target,
        ) from None
