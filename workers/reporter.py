"""Keeps the service informed of one job while the job goes on elsewhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from service.contracts.errors import ErrorClass, NnfarmError
from service.contracts.jobs import StageEvent

_LEAST_PAUSE_S = 0.2  # events that come thick and fast travel together

logger = logging.getLogger(__name__)


class Reporter:
    """A thread that sends events soon after they come, and an empty report when none do.

    Leaving the context sends what is left. When the service takes the job away (another attempt
    has it, or it is gone), `lost` is set and nothing more is sent.

    Args:
        send: posts events; raises NnfarmError.
        interval_s: longest silence; well below the lease.
    """

    def __init__(self, send: Callable[[Sequence[StageEvent]], None], interval_s: float) -> None:
        self.lost = threading.Event()
        self._send = send
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._waiting: list[StageEvent] = []
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reporter", daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._wake.set()
        self._thread.join()
        if self._waiting:
            self._report()

    def add(self, event: StageEvent) -> None:
        """Takes an event; it is sent soon."""
        with self._lock:
            self._waiting.append(event)
        self._wake.set()

    def _work(self) -> None:
        while not self._stopping.is_set() and not self.lost.is_set():
            self._wake.wait(self._interval_s)
            self._wake.clear()
            self._report()
            self._stopping.wait(_LEAST_PAUSE_S)

    def _report(self) -> None:
        with self._lock:
            events, self._waiting = self._waiting, []
        if self.lost.is_set():
            return
        try:
            self._send(events)
        except NnfarmError as error:
            if error.kind.error_class is ErrorClass.INFRA:
                # The job may still end before the lease does; the events are kept for then.
                logger.warning("Events could not be sent: %s", error)
                with self._lock:
                    self._waiting[:0] = events
            else:
                logger.warning("The service has taken the job away: %s: %s", error.code, error)
                self.lost.set()
