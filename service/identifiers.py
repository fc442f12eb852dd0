"""Ids: a prefix naming the kind, then letters that sort by creation time."""

from __future__ import annotations

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: nothing looks like another
_RANDOM_BITS = 70
_TIME_BITS = 50
_LETTERS = (_TIME_BITS + _RANDOM_BITS) // 5

_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """A fresh id such as ``cmp_0r9x...``.

    Ids of one process strictly increase, so "newest first" is an order by id and the last id of a
    page is its cursor.
    """
    global _last
    milliseconds = time.time_ns() // 1_000_000
    candidate = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    with _lock:
        _last = max(candidate, _last + 1)
        value = _last
    letters = (_ALPHABET[(value >> 5 * place) & 31] for place in reversed(range(_LETTERS)))
    return f"{prefix}_{''.join(letters)}"
