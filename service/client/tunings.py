"""The client's calls on tunings."""

from __future__ import annotations

from collections.abc import Iterator

from service.client.connection import Connection, parse
from service.client.following import follow
from service.client.messages import FINAL_JOB, Event, Tuning, TuningId, TuningRequest

_PATH = "/v1/tunings"


class Tunings:
    """Speaks to one service; its calls raise `NnfarmError`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def request(self, request: TuningRequest) -> Tuning:
        """Ask for faster kernels; the same request joins one that is under way."""
        body = request.model_dump(mode="json")
        return parse(Tuning, self._connection.json("POST", _PATH, json=body))

    def get(self, tuning_id: TuningId) -> Tuning:
        """A tuning as it is now."""
        return parse(Tuning, self._connection.json("GET", f"{_PATH}/{tuning_id}"))

    def cancel(self, tuning_id: TuningId) -> Tuning:
        """End a tuning that is not over; what it has measured stays."""
        return parse(Tuning, self._connection.json("POST", f"{_PATH}/{tuning_id}/cancel"))

    def follow(self, tuning_id: TuningId) -> Iterator[Event]:
        """Events of a tuning from its start until it is final."""
        return follow(
            self._connection,
            f"{_PATH}/{tuning_id}/events",
            lambda: self.get(tuning_id).status in FINAL_JOB,
        )
