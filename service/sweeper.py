"""The thread that notices what did not happen: silent workers, agents and devices."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from sqlalchemy.orm import Session

from service import outbox
from service.columns import utc_now
from service.db import Database
from service.job_kinds import JOB_KINDS
from service.jobs import rules_of_time
from service.resources.devices import service as devices
from service.resources.runs import leases
from service.resources.runs import service as runs
from service.settings import Settings

_KEEP_SENT_TASKS = timedelta(days=1)

_log = logging.getLogger(__name__)


class Sweeper:
    """Applies every rule of time, each in its own transaction, again and again."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._interval_s = settings.sweep_interval_s
        attempts = settings.max_attempts
        self._rules: list[Callable[[Session], None]] = [
            *(
                partial(rules_of_time.requeue_lost, kind=kind, max_attempts=attempts)
                for kind in JOB_KINDS
            ),
            *(
                partial(rules_of_time.resend_forgotten, kind=kind, after_s=settings.resend_after_s)
                for kind in JOB_KINDS
            ),
            lambda session: leases.requeue_lost(session, attempts),
            lambda session: devices.mark_silent_offline(session, settings.device_timeout_s),
            lambda session: runs.skip_hopeless(session, settings.no_device_after_s),
            lambda session: outbox.forget_sent(session, utc_now() - _KEEP_SENT_TASKS),
        ]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Begin to sweep."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the rule in hand and end the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            for rule in self._rules:
                if self._stopping.is_set():
                    return
                try:
                    with self._database.writing() as session:
                        rule(session)
                except Exception:  # one rule's failure must not end the others, nor this thread
                    _log.exception("a rule of the sweeper failed")
