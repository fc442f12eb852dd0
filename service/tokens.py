"""Signed tokens that open one job's or one run's calls, and nothing else."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from enum import StrEnum

from service.contracts.errors import NnfarmError


class TokenKind(StrEnum):
    """Who holds the token."""

    JOB = "job"
    LEASE = "lease"


@dataclass(frozen=True)
class Grant:
    """What a token allows: the calls of one attempt (or fence) at one subject."""

    kind: TokenKind
    subject: str
    generation: int


class TokenSigner:
    """Makes and checks tokens.

    Args:
        key: the service's secret; all its processes share it.
        lifetime_s: how long a token is valid. Fencing, not expiry, stops an old holder; expiry
            only bounds what a leaked token is worth.
    """

    def __init__(self, key: str, lifetime_s: float) -> None:
        self._key = key.encode()
        self._lifetime_s = lifetime_s

    def sign(self, grant: Grant) -> str:
        """A token for this grant."""
        expires = time.time() + self._lifetime_s
        payload = json.dumps([grant.kind, grant.subject, grant.generation, expires]).encode()
        return f"{_encode(payload)}.{_encode(self._signature(payload))}"

    def verify(self, token: str) -> Grant:
        """The grant of a token.

        Raises:
            NnfarmError: ``request.unauthorized`` for a forged, damaged or expired token.
        """
        try:
            payload, signature = (_decode(part) for part in token.split("."))
        except (ValueError, binascii.Error):
            raise NnfarmError("request.unauthorized", "The token is not one of ours.") from None
        if not hmac.compare_digest(signature, self._signature(payload)):
            raise NnfarmError("request.unauthorized", "The token's signature is wrong.")
        kind, subject, generation, expires = json.loads(payload)
        if time.time() > expires:
            raise NnfarmError("request.unauthorized", "The token has expired.")
        return Grant(TokenKind(kind), subject, generation)

    def _signature(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, hashlib.sha256)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
