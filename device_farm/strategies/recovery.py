"""A bounded ladder for a phone that stopped answering: reconnect, then mark it."""

from __future__ import annotations

from device_farm.protocols.device import RecoverProtocol

_ATTEMPTS = 2


def recover(device: RecoverProtocol) -> str:
    """Tries to get the phone back.

    Returns:
        Why it is unusable, for its description; empty when it answers again.
    """
    for _ in range(_ATTEMPTS):
        if device.reconnect():
            return ""
    return f"does not answer after {_ATTEMPTS} new connections"
