"""Command line of the supervisor."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from service.client.results import ExitCode, exit_code_of
from service.client.terminal import Terminal
from service.contracts.errors import NnfarmError
from service.local.demo import run_demo
from service.local.settings import DEFAULT_PORT, LocalSettings
from service.local.stack import Stack, StackOptions

app = typer.Typer(
    name="service.local",
    help="Service, worker and agent on this machine, kept running.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Port = Annotated[int | None, typer.Option(help="Port of the service (NNFARM_PORT).")]


@app.command()
def serve(port: Port = None) -> None:
    """Run the stack until Ctrl-C or SIGTERM."""
    settings = LocalSettings()
    options = _options(settings, port or settings.port or DEFAULT_PORT)
    terminal = Terminal()
    with Stack(options, terminal.say) as stack:
        stack.wait_for_devices()
        terminal.say(f"ready: {stack.url} (Ctrl-C stops)")
        _wait_for_ever()
        terminal.say("stopping")


@app.command()
def demo(
    port: Port = None,
    output: Annotated[Path, typer.Option(help="Folder for the packages.")] = Path("demo-artifacts"),
    keep: Annotated[bool, typer.Option("--keep", help="Serve on until Ctrl-C.")] = False,
) -> None:
    """Compile and run examples/digits on virtual phones, show the table, stop."""
    settings = LocalSettings()
    options = _options(settings, port or settings.port)
    terminal = Terminal()
    with Stack(options, terminal.say) as stack:
        stack.wait_for_devices()
        exit_code = run_demo(stack.url, output)
        if keep:
            terminal.say(f"the page: {stack.url} (Ctrl-C stops)")
            _wait_for_ever()
    raise typer.Exit(exit_code)


def _options(settings: LocalSettings, port: int | None) -> StackOptions:
    return StackOptions(
        settings.data_dir,
        settings.host,
        port,
        database_url=settings.database_url,
        redis_url=settings.redis_url,
    )


def _wait_for_ever() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


def main() -> int:
    """Run the command; errors become a message and an exit code."""
    # SIGTERM ends as Ctrl-C does: through the context managers that stop the parts.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return app(standalone_mode=False) or ExitCode.OK
    except NnfarmError as error:
        Terminal().say(f"error: {error.detail}")
        return exit_code_of(error)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
