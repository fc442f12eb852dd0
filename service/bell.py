"""Wakes waiters of this process when a commit changed what they wait for.

The bell carries no data and promises nothing: another process may have made the change. Every
waiter therefore looks at the database when it wakes, and wakes now and then by itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class Bell:
    """Topics and the callbacks to call when one is rung; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: defaultdict[str, set[Callable[[], object]]] = defaultdict(set)

    @contextmanager
    def subscribed(self, topic: str, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` at every ring of `topic` inside the block."""
        with self._lock:
            self._callbacks[topic].add(callback)
        try:
            yield
        finally:
            with self._lock:
                self._callbacks[topic].discard(callback)
                if not self._callbacks[topic]:
                    del self._callbacks[topic]

    def ring(self, topics: Iterable[str]) -> None:
        """Wake everyone who listens to one of the topics."""
        with self._lock:
            callbacks = [call for topic in topics for call in self._callbacks.get(topic, ())]
        for callback in callbacks:
            callback()


class AsyncListener:
    """One coroutine's ear; create it in the coroutine that waits."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake the coroutine from any thread; a loop that is gone has nobody to wake."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    def reset(self) -> None:
        """Forget earlier rings; call it before looking at the database, never after."""
        self._event.clear()

    async def wait(self, timeout_s: float) -> None:
        """Wait for a ring since `reset`, but no longer than the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return
