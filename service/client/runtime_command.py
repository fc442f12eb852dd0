"""`nnfarm runtime`: the runtime bundles of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from service.client.messages import RuntimeBundle
from service.client.session import Session
from service.client.tables import size_text

app = typer.Typer(
    help="Runtime bundles: player, runner, TVM's runtime and C header for a device.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command(name="list")
def list_bundles(context: typer.Context) -> None:
    """List the bundle of each target."""
    session: Session = context.obj
    with session.client() as client:
        bundles = client.runtime_bundles.newest()
    content = {"items": [bundle.model_dump(mode="json") for bundle in bundles]}
    session.terminal.show(content, _table(bundles))


@app.command()
def download(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="For example android-arm64-v8a.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The zip's name.", dir_okay=False)
    ] = None,
) -> None:
    """Save the zip of a target's bundle."""
    session: Session = context.obj
    path = output or Path(f"nnfarm-runtime-{target}.zip")
    with session.client() as client, session.terminal.transfer(path.name) as on_bytes:
        bundle = client.runtime_bundles.get(target)
        client.runtime_bundles.download(bundle, path, on_bytes)
    session.terminal.show(bundle.model_dump(mode="json") | {"path": str(path)}, str(path))


@app.command()
def upload(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(help="For example build/runtime/TARGET.", exists=True, file_okay=False)
    ],
    agent_token: Annotated[
        str, typer.Option(envvar="NNFARM_AGENT_TOKEN", help="The agents' token.")
    ],
) -> None:
    """Give the service a built bundle, which agents and users then download."""
    session: Session = context.obj
    with session.client() as client:
        bundle = client.runtime_bundles.upload(folder, agent_token)
    session.terminal.show(bundle.model_dump(mode="json"), f"{bundle.target} {bundle.sha256}")


def _table(bundles: list[RuntimeBundle]) -> Table:
    table = Table("target", "size", "versions", "SHA-256")
    for bundle in bundles:
        versions = bundle.description.versions
        words = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
        table.add_row(bundle.target, size_text(bundle.size_bytes), words, bundle.sha256[:12])
    return table
