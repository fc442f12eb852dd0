"""What the command says: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from service.client.messages import Event
from service.client.transfer import OnBytes
from service.contracts.errors import NnfarmError

# A table cut to 80 columns in a log or a file helps nobody; tables take only what they need.
_WIDTH_WITHOUT_TERMINAL = 400


def wide_console(stderr: bool = False) -> Console:
    """A console that takes text as it is: names of a model's nodes may look like markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


class Terminal:
    """Output of one command.

    Args:
        as_json: results are JSON, and nothing else goes to standard output.
    """

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self._out = wide_console()
        self._err = wide_console(stderr=True)

    def show(self, content: dict[str, Any], *views: RenderableType) -> None:
        """A result: `content` for a machine, or else `views` for a person."""
        if self.as_json:
            sys.stdout.write(json.dumps(content, indent=2) + "\n")
            return
        for view in views:
            self._out.print(view)

    def say(self, line: str) -> None:
        """A line about what goes on."""
        self._err.print(line, soft_wrap=True)

    def fail(self, error: NnfarmError) -> None:
        """The one line about an error; JSON too where that was asked for."""
        if self.as_json:
            problem = error.to_problem().model_dump(mode="json")
            sys.stdout.write(json.dumps({"error": problem}, indent=2) + "\n")
        detail = " ".join(error.detail.split())
        self.say(f"error: {detail} ({error.code})")

    @contextmanager
    def transfer(self, title: str) -> Iterator[OnBytes]:
        """A bar for one file's bytes, where a person is looking."""
        with self._bar(title) as move:
            yield move

    @contextmanager
    def job(self, title: str) -> Iterator[Callable[[Event], None]]:
        """A bar for a compilation's events, where a person is looking."""
        with self._bar(title) as move:

            def on_event(event: Event) -> None:
                if event.kind == "progress":
                    move(event.data["done"], event.data["total"])

            yield on_event

    @contextmanager
    def _bar(self, title: str) -> Iterator[OnBytes]:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        progress = Progress(
            *columns, console=self._err, transient=True, disable=not self._err.is_terminal
        )
        with progress:
            task = progress.add_task(title, total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)
