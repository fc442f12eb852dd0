"""The client's calls on quantizations."""

from __future__ import annotations

from collections.abc import Iterator

from service.client.connection import Connection, parse
from service.client.following import follow
from service.client.messages import (
    FINAL_JOB,
    Event,
    Quantization,
    QuantizationId,
    QuantizationRequest,
)

_PATH = "/v1/quantizations"


class Quantizations:
    """Speaks to one service; its calls raise `NnfarmError`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def request(self, request: QuantizationRequest) -> Quantization:
        """Ask for a quantized model; the same request again is answered from what was made."""
        body = request.model_dump(mode="json")
        return parse(Quantization, self._connection.json("POST", _PATH, json=body))

    def get(self, quantization_id: QuantizationId) -> Quantization:
        """A quantization as it is now."""
        answer = self._connection.json("GET", f"{_PATH}/{quantization_id}")
        return parse(Quantization, answer)

    def cancel(self, quantization_id: QuantizationId) -> Quantization:
        """End a quantization that is not over."""
        answer = self._connection.json("POST", f"{_PATH}/{quantization_id}/cancel")
        return parse(Quantization, answer)

    def follow(self, quantization_id: QuantizationId) -> Iterator[Event]:
        """Events of a quantization from its start until it is final."""
        return follow(
            self._connection,
            f"{_PATH}/{quantization_id}/events",
            lambda: self.get(quantization_id).status in FINAL_JOB,
        )
