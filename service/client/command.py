"""The `nnfarm` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from typer.exceptions import TyperException

from service.client import arguments, runtime_command
from service.client.compiling import CompileCommand, show_results
from service.client.job_commands import cancel, show
from service.client.messages import CompilationId
from service.client.quantize_command import quantize
from service.client.results import EXIT_CODE_HELP, ExitCode, Thresholds, exit_code_of
from service.client.session import Session
from service.client.tables import device_table, model_table
from service.client.terminal import Terminal
from service.client.tune_command import tune
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOptions, Precision
from service.contracts.targets import Abi, CpuVariant

app = typer.Typer(
    name="nnfarm",
    help=f"Compile models for NNAPI and run them on the farm's phones.\n\n{EXIT_CODE_HELP}",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    context: typer.Context,
    url: Annotated[
        str, typer.Option(envvar="NNFARM_URL", help="The service.")
    ] = "http://127.0.0.1:8000",
    token: Annotated[
        str | None, typer.Option(envvar="NNFARM_TOKEN", help="API token, where one is needed.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON on standard output and nothing else there.")
    ] = False,
) -> None:
    context.obj = Session(url, token, Terminal(as_json))


@app.command(name="compile", epilog=EXIT_CODE_HELP)
def compile_model(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(help="ONNX, TFLite or PyTorch (.pt2).", exists=True, dir_okay=False)
    ],
    levels: Annotated[
        str, typer.Option(help="NNAPI feature levels, comma separated.")
    ] = "1,2,3,4,7",
    abi: Annotated[
        str, typer.Option(help=f"Comma separated, of {', '.join(Abi)}.")
    ] = Abi.ARM64_V8A.value,
    run_on: Annotated[
        str, typer.Option(help="none, any, all, or device ids, comma separated.")
    ] = "none",
    dataset: Annotated[
        Path | None, typer.Option(help="Evaluation set (.npz).", exists=True, dir_okay=False)
    ] = None,
    exclude_op: Annotated[
        list[str] | None, typer.Option(help="Keep this operation type on the CPU; repeatable.")
    ] = None,
    exclude_node: Annotated[
        list[str] | None, typer.Option(help="Keep this node on the CPU; repeatable.")
    ] = None,
    only_node: Annotated[
        list[str] | None, typer.Option(help="Offload no node but this; repeatable.")
    ] = None,
    accelerator: Annotated[
        list[str] | None,
        typer.Option(help="Accelerators, the most wanted first; repeatable.", show_default="nnapi"),
    ] = None,
    min_subgraph_ops: Annotated[
        int, typer.Option(help="Hand smaller subgraphs back to the CPU.", min=1)
    ] = 1,
    precision: Annotated[
        Precision, typer.Option(help="How the accelerator computes on float32 tensors.")
    ] = Precision.FLOAT32,
    cpu_variant: Annotated[
        list[CpuVariant] | None,
        typer.Option(
            help="Build the CPU's code for these processors, too; repeatable. dotprod, fp16 "
            "and i8mm are arm64-v8a's, avx2 and avx512 x86_64's. The device takes what it can run."
        ),
    ] = None,
    nnapi: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="How the player asks NNAPI: device, preference, priority, compute, buffers, "
            "compile-timeout-ms, execute-timeout-ms; repeatable.",
        ),
    ] = None,
    input_shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=1,3,224,224",
            help="Shape of an input whose model leaves dimensions open; repeatable. "
            "An open batch is 1 without it.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the artifacts and their runs.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option(help="Save the packages in this folder.", file_okay=False)
    ] = None,
    min_agreement: Annotated[
        float | None,
        typer.Option(help="Least share of samples with the original's top-1.", min=0, max=1),
    ] = None,
    max_error: Annotated[
        float | None, typer.Option(help="Largest absolute error of an output.", min=0)
    ] = None,
) -> None:
    """Compile a model, run the artifacts, show what came out."""
    session: Session = context.obj
    thresholds = Thresholds(min_agreement, max_error)
    targets = arguments.run_on(run_on)
    if not wait and (output or thresholds.are_set):
        raise typer.BadParameter("--output and thresholds need the results: not with --no-wait")
    if thresholds.are_set and targets == "none":
        raise typer.BadParameter("thresholds need a run: give --run-on")
    command = CompileCommand(
        model=model,
        levels=arguments.levels(levels),
        abis=arguments.abis(abi),
        run_on=targets,
        dataset=dataset,
        options=CompileOptions(
            exclude_ops=tuple(exclude_op or ()),
            exclude_nodes=tuple(exclude_node or ()),
            only_nodes=tuple(only_node or ()),
            accelerators=tuple(accelerator or ("nnapi",)),
            min_subgraph_ops=min_subgraph_ops,
            precision=precision,
            cpu_variants=tuple(cpu_variant or ()),
            nnapi=arguments.nnapi_settings(nnapi or ()),
            input_shapes=arguments.input_shapes(input_shape or ()),
        ),
    )
    with session.client() as client:
        compilation = command.start(client, session.terminal)
        if not wait:
            content = compilation.model_dump(mode="json")
            session.terminal.show(content, f"{compilation.id} {compilation.status.value}")
            return
        done = command.wait(client, session.terminal, compilation)
        earlier = compilation.finished_runs()
        raise typer.Exit(show_results(client, session.terminal, done, output, thresholds, earlier))


app.command(name="quantize", epilog=EXIT_CODE_HELP)(quantize)
app.add_typer(runtime_command.app, name="runtime")
app.command(name="tune", epilog=EXIT_CODE_HELP)(tune)
app.command()(show)
app.command()(cancel)


@app.command()
def download(
    context: typer.Context,
    compilation_id: Annotated[str, typer.Argument(help="Id of a compilation (cmp_...).")],
    output: Annotated[Path, typer.Option(help="Folder for the packages.", file_okay=False)],
) -> None:
    """Save a compilation's packages."""
    session: Session = context.obj
    with session.client() as client:
        compilation = client.compilation(CompilationId(compilation_id))
        raise typer.Exit(show_results(client, session.terminal, compilation, output))


@app.command()
def devices(context: typer.Context) -> None:
    """Show the farm's phones."""
    session: Session = context.obj
    with session.client() as client:
        found = client.devices()
    content = {"devices": [device.model_dump(mode="json") for device in found]}
    session.terminal.show(content, device_table(found))


@app.command()
def models(context: typer.Context) -> None:
    """Show the models that were uploaded."""
    session: Session = context.obj
    with session.client() as client:
        found = client.models()
    content = {"models": [model.model_dump(mode="json") for model in found]}
    session.terminal.show(content, model_table(found))


def run(words: Sequence[str]) -> int:
    """Run the command; errors become one line and an exit code."""
    # Typer has not parsed anything yet where its own errors come from.
    terminal = Terminal("--json" in words)
    try:
        return app(list(words), standalone_mode=False) or ExitCode.OK
    except NnfarmError as error:
        terminal.fail(error)
        return exit_code_of(error)
    except TyperException as error:
        terminal.fail(NnfarmError("request.invalid", error.format_message()))
        return ExitCode.USAGE
    except ValidationError as error:
        terminal.fail(NnfarmError("request.invalid", error.errors()[0]["msg"]))
        return ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        terminal.say("stopped; the job goes on, see nnfarm show")
        return 130


def main() -> None:
    """Entry point of the `nnfarm` command."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
