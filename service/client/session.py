"""What the global options of the command decide."""

from __future__ import annotations

from dataclasses import dataclass

from service.client.http import Client
from service.client.terminal import Terminal


@dataclass(frozen=True)
class Session:
    """The service a command speaks to, and where it says what."""

    url: str
    token: str | None
    terminal: Terminal

    def client(self) -> Client:
        """A client of the chosen service."""
        return Client(self.url, self.token)
