"""Keeps a lease alive while its run goes on."""

from __future__ import annotations

import contextlib
import logging
import threading

from device_farm.client import AgentClient
from service.contracts.errors import NnfarmError
from service.contracts.runs import RunLease

log = logging.getLogger(__name__)

_BEATS_PER_LEASE = 3
_GONE = {"request.fenced", "request.not_found", "request.unauthorized", "request.forbidden"}


class Heartbeat(contextlib.AbstractContextManager["Heartbeat"]):
    """A thread that beats while the context is open; `lost` tells that the lease is another's."""

    def __init__(self, client: AgentClient, lease: RunLease) -> None:
        self._client = client
        self._lease = lease
        self._over = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name=f"heartbeat {lease.run_id}", daemon=True
        )

    @property
    def lost(self) -> bool:
        """Whether the run must be abandoned: nobody waits for its result."""
        return self._lost.is_set()

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        interval_s = self._lease.expires_in_s / _BEATS_PER_LEASE
        while not self._over.wait(interval_s):
            try:
                self._client.heartbeat(self._lease)
            except NnfarmError as error:
                if error.code in _GONE:
                    log.warning("run %s is abandoned: %s", self._lease.run_id, error)
                    self._lost.set()
                    return
                # The service is away. It may be back before the lease ends, or hand the run to
                # another agent, which the next beat is told: so the run goes on.
                log.warning("run %s: no heartbeat: %s", self._lease.run_id, error)
