"""A task of any kind of job: claim, download, do it in the sandbox, upload, report.

Safe to run twice: the claim decides who works, and each later call carries the attempt's token.
"""

from __future__ import annotations

import logging
import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import Celery

from service.contracts.errors import ErrorClass, NnfarmError
from workers.input_cache import InputCache
from workers.job_kind import JobKind, Outcome, Spec
from workers.reporter import Reporter
from workers.sandbox import JobAbandoned, Sandbox, SandboxResult
from workers.service_client import JobClient, ServiceClient
from workers.settings import WorkerSettings

_MAX_RETRIES = 8
_LONGEST_BACKOFF_S = 30  # below the queue's visibility time-out, which also holds for delays
_TRANSFER_MARGIN_S = 3600.0  # for downloads and uploads around a job's own time

# Another worker has the job, it is done, or it is gone: nothing to do here.
_NOT_OURS = ("request.conflict", "request.fenced", "request.not_found")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobWorker:
    """What the tasks of one process share."""

    settings: WorkerSettings
    service: ServiceClient
    sandbox: Sandbox
    inputs: InputCache

    def work_on(self, kind: JobKind[Spec, Outcome], job_id: str) -> None:
        """Does a job, or finds that it is not this worker's turn.

        Raises:
            NnfarmError: of class infra, the service cannot be told; run it again later.
        """
        try:
            spec = self.service.claim(kind, job_id, _worker_name())
            with self.service.job(kind, job_id, spec) as job, self._job_folder(job_id) as folder:
                self._deliver(kind, job, folder, spec)
        except JobAbandoned:
            logger.info("%s was taken over or cancelled; abandoned", job_id)
        except NnfarmError as error:
            if error.code not in _NOT_OURS:
                raise
            logger.info("%s is not this worker's: %s", job_id, error.detail)

    def remove_stale_folders(self) -> None:
        """Removes what workers that were killed have left; a living job's folder is younger."""
        oldest_s = time.time() - self.settings.job_wall_s - _TRANSFER_MARGIN_S
        for folder in self._jobs_dir.glob("*"):
            if folder.stat().st_mtime < oldest_s:
                shutil.rmtree(folder, ignore_errors=True)

    def _deliver(
        self, kind: JobKind[Spec, Outcome], job: JobClient, folder: Path, spec: Spec
    ) -> None:
        log_tail = ""
        try:
            with Reporter(job.send_events, self.settings.heartbeat_interval_s) as reporter:
                self._write_input(kind, job, folder, spec)
                result = self.sandbox.run(kind, folder, reporter.add, reporter.lost)
                log_tail = result.log_tail
                outcome = self._upload(job, result, reporter)
            job.complete(outcome.model_copy(update={"attempt": spec.attempt}))
        except NnfarmError as error:
            if error.code in _NOT_OURS:
                raise
            # Also for infra errors: the service queues the job again at once, instead of after
            # the lease. Only when it cannot be told does the task itself come back.
            logger.warning("%s failed: %s: %s", job.job_id, error.code, error.detail)
            job.fail(error, log_tail)
        except JobAbandoned:
            raise
        except Exception as error:
            logger.exception("%s met a bug of the worker", job.job_id)
            job.fail(NnfarmError("bug.internal", f"{type(error).__name__}: {error}"), log_tail)

    def _write_input(
        self, kind: JobKind[Spec, Outcome], job: JobClient, folder: Path, spec: Spec
    ) -> None:
        def fetch(sha256: str, path: Path) -> None:
            self.inputs.copy(sha256, path, job.download)

        # The child has no use for the token, and nobody trusts the child.
        blank = spec.model_copy(update={"job_token": ""})
        message = kind.prepare(blank, folder, fetch, self.settings)
        (folder / "job.json").write_text(message.model_dump_json(), encoding="utf-8")

    @staticmethod
    def _upload(job: JobClient, result: SandboxResult[Outcome], reporter: Reporter) -> Outcome:
        if isinstance(result.outcome, NnfarmError):
            raise result.outcome
        for sha256, path in result.blobs.items():
            if reporter.lost.is_set():
                raise JobAbandoned
            job.upload(sha256, path)
        return result.outcome

    @property
    def _jobs_dir(self) -> Path:
        return self.settings.worker_dir.resolve() / "jobs"

    @contextmanager
    def _job_folder(self, job_id: str) -> Iterator[Path]:
        self._jobs_dir.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{job_id}-", dir=self._jobs_dir))
        try:
            yield folder
        finally:
            # The child may have made folders nobody can enter; that is not the next job's trouble.
            shutil.rmtree(folder, ignore_errors=True)


def register(app: Celery, worker: JobWorker, kind: JobKind[Any, Any]) -> None:
    """Makes the task of a kind of job known to `app`."""

    @app.task(name=kind.task, bind=True, max_retries=_MAX_RETRIES)  # type: ignore[untyped-decorator]
    def do_job(task: Any, job_id: str) -> None:
        try:
            worker.work_on(kind, job_id)
        except NnfarmError as error:
            if error.kind.error_class is not ErrorClass.INFRA:
                raise
            countdown_s = min(2**task.request.retries, _LONGEST_BACKOFF_S)
            raise task.retry(exc=error, countdown=countdown_s) from error


def _worker_name() -> str:
    # One name a thread: a thread works on one job at a time, so the same name claiming again
    # means that its earlier attempt is over.
    return f"{platform.node()}-{os.getpid()}-{threading.get_native_id()}"
