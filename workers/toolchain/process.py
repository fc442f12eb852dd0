"""Running one tool: bounded in time, with everything it said kept for the error."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path


class ToolFailed(Exception):  # noqa: N818 - named for what happened, as subprocess.TimeoutExpired
    """A tool ended badly.

    Attributes:
        command: the program and its arguments.
        exit_code: None when the tool was stopped by the time limit; negative for a signal.
        output: standard output and standard error, as they came.
    """

    def __init__(self, command: Sequence[str], exit_code: int | None, output: str) -> None:
        how = "ran out of time" if exit_code is None else f"ended with code {exit_code}"
        super().__init__(f"{Path(command[0]).name} {how}: {shlex.join(command)}\n{output}")
        self.command = tuple(command)
        self.exit_code = exit_code
        self.output = output


def run_tool(
    command: Sequence[str],
    *,
    timeout_s: float,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Runs a tool to its end.

    Args:
        command: the program and its arguments; no shell is involved.
        timeout_s: the tool is killed after so long.
        environment: all of the tool's environment; None inherits this process's.
        folder: working folder; None is this process's.

    Returns:
        Standard output and standard error, as they came.

    Raises:
        ToolFailed: the tool could not be waited for or returned a non-zero code.
    """
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(command, None, _text(error.stdout)) from error
    if done.returncode != 0:
        raise ToolFailed(command, done.returncode, _text(done.stdout))
    return _text(done.stdout)


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")
