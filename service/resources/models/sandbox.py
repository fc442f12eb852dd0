"""Runs the inspection of an untrusted model in a child process with limits."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

from pydantic import ValidationError

import service
from service.contracts.errors import NnfarmError, Problem, from_problem
from service.contracts.tensors import ModelSignature
from service.settings import Settings

_log = logging.getLogger(__name__)


def inspect(path: Path, settings: Settings) -> ModelSignature:
    """The signature of a model file.

    Raises:
        NnfarmError: a ``model.*`` code for anything wrong with the file.
    """
    command = [
        sys.executable,
        "-m",
        "service.resources.models.inspection",
        str(path),
        f"--memory-bytes={settings.inspection_memory_bytes}",
        f"--cpu-s={settings.inspection_timeout_s}",
    ]
    try:
        child = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=settings.inspection_timeout_s,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NnfarmError(
            "model.unreadable",
            f"Reading the model took longer than {settings.inspection_timeout_s} s.",
        ) from None
    if child.returncode != 0:
        # A parser that dies on the file says nothing of the service: the file is to blame.
        _log.warning("inspection exit %d: %s", child.returncode, child.stderr[-2000:])
        raise NnfarmError(
            "model.unreadable",
            f"Reading the model failed: its reader stopped with exit code {child.returncode}.",
        )
    return _parse(child.stdout)


def _parse(output: bytes) -> ModelSignature:
    try:
        return ModelSignature.model_validate_json(output)
    except ValidationError:
        raise from_problem(Problem.model_validate_json(output)) from None


def _environment() -> dict[str, str]:
    # No secrets of the service; only what Python needs to find this package.
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL") if key in os.environ}
    return {**kept, "PYTHONPATH": str(Path(service.__file__).parents[1])}
