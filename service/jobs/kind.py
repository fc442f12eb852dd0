"""What tells one kind of job from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy.orm import Session

from service.contracts.jobs import JobStatus, StageEvent
from service.jobs.tables import JobRow

FINAL = (JobStatus.SUCCEEDED, JobStatus.FAILED)

Row = TypeVar("Row", bound=JobRow)


@dataclass(frozen=True)
class JobKind(Generic[Row]):
    """One kind of job.

    Attributes:
        name: the noun in sentences: compilation.
        collection: its place in paths: compilations.
        row: its table.
        task: the Celery task that does it.
        queue: where the task is sent.
        spec_type: the message a worker gets with a claimed job.
        make_spec: makes that message of a row and the job's token.
        take_event: keeps what an event of a job brings beside progress.
        has_loose_ends: whether more will be said in the stream of a job that is final.
    """

    name: str
    collection: str
    row: type[Row]
    task: str
    queue: str
    spec_type: type[BaseModel]
    make_spec: Callable[[Session, Row, str], BaseModel]
    take_event: Callable[[Session, Row, StageEvent], None] = lambda _session, _row, _event: None
    has_loose_ends: Callable[[Session, Row], bool] = lambda _session, _row: False
