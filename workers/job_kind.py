"""What tells one kind of job from another, to a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from service.contracts.jobs import JobOutcome, JobTicket
from workers.settings import WorkerSettings

Spec = TypeVar("Spec", bound=JobTicket)
Outcome = TypeVar("Outcome", bound=JobOutcome)

Fetch = Callable[[str, Path], None]
"""Puts a copy of the blob of a SHA-256 at a path."""


@dataclass(frozen=True)
class JobKind(Generic[Spec, Outcome]):
    """One kind of job.

    Attributes:
        task: the Celery task that does it; its argument is the job's id.
        collection: where the service has it: compilations.
        spec: what the service gives with a claimed job.
        outcome: what the child leaves in `outcome.json` and the service wants.
        entry: module whose `main(work_dir: Path) -> int` does the job in the sandbox.
        prepare: puts the job's files into its folder and gives the content of `job.json`.
        actor: who crashes or runs into a limit, in sentences: compiler.
        area: of the error codes for that, `<area>.crashed` and `<area>.limit_exceeded`.
    """

    task: str
    collection: str
    spec: type[Spec]
    outcome: type[Outcome]
    entry: str
    prepare: Callable[[Spec, Path, Fetch, WorkerSettings], BaseModel]
    actor: str
    area: str
