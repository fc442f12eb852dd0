"""`nnfarm quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.client.quantizing import QuantizeCommand, show_quantization
from service.client.session import Session
from service.contracts.quantization import CalibrationMethod, IntegerType, QuantizeOptions


def quantize(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A float ONNX model.", exists=True, dir_okay=False)],
    dataset: Annotated[
        Path, typer.Option(help="Samples to calibrate on (.npz).", exists=True, dir_okay=False)
    ],
    method: Annotated[
        CalibrationMethod, typer.Option(help="How the range of a tensor is chosen.")
    ] = CalibrationMethod.MINMAX,
    percentile: Annotated[
        float, typer.Option(help="Share of values inside the range, for --method percentile.")
    ] = QuantizeOptions().percentile,
    per_channel: Annotated[
        bool, typer.Option("--per-channel/--per-tensor", help="Scales of the weights.")
    ] = True,
    activation: Annotated[
        IntegerType, typer.Option(help="Element type of activations.")
    ] = IntegerType.INT8,
    weight: Annotated[
        IntegerType, typer.Option(help="Element type of weights.")
    ] = IntegerType.INT8,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE", help="Node that stays float, by name; repeatable."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the quantized model.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Save it here.", dir_okay=False)
    ] = None,
    max_loss: Annotated[
        str | None,
        typer.Option(metavar="1%", help="Largest loss of top-1 (of agreement without labels)."),
    ] = None,
) -> None:
    """Quantize a float model, and say what that costs."""
    session: Session = context.obj
    limit = None if max_loss is None else _share(max_loss)
    if not wait and (output is not None or limit is not None):
        raise typer.BadParameter("--output and --max-loss need the result: not with --no-wait")
    command = QuantizeCommand(
        model=model,
        dataset=dataset,
        options=QuantizeOptions(
            method=method,
            percentile=percentile,
            per_channel=per_channel,
            activation=activation,
            weight=weight,
            exclude_nodes=tuple(exclude or ()),
        ),
    )
    with session.client() as client:
        started = command.start(client, session.terminal)
        if not wait:
            content = started.model_dump(mode="json")
            session.terminal.show(content, f"{started.id} {started.status.value}")
            return
        done = command.wait(client, session.terminal, started)
        raise typer.Exit(show_quantization(client, session.terminal, done, output, limit))


def _share(text: str) -> float:
    """0.01 of "1%" or "0.01"."""
    number, percent, rest = text.partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value <= 1:
        raise typer.BadParameter(f"--max-loss: {text!r} is neither 0 to 1 nor a percentage")
    return value
