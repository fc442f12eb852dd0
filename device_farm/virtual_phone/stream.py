"""One ADB stream (an OPEN between two local ids) with flow control in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from device_farm.virtual_phone.wire import Command, Packet, WireError

SendPacket = Callable[[Packet], Awaitable[None]]


class StreamClosedError(Exception):
    """The host has closed the stream, or the whole connection is gone."""


class Stream:
    """A byte stream to the host.

    ADB allows one unacknowledged WRTE a direction. So `write` waits for the host's OKAY, and a
    WRTE of the host is acknowledged only when `read` has taken it: memory stays bounded by one
    payload a direction.
    """

    def __init__(self, local_id: int, remote_id: int, send: SendPacket, max_payload: int) -> None:
        self.local_id = local_id
        self.remote_id = remote_id
        self.max_payload = max_payload
        self._send = send
        self._incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._write_allowed = asyncio.Event()
        self._write_allowed.set()
        self._write_lock = asyncio.Lock()
        self._closed = asyncio.Event()
        self._pending = b""

    async def read(self) -> bytes:
        """The next bytes of the host, at least one; empty when the host has closed."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        if self._closed.is_set() and self._incoming.empty():
            return b""
        data_or_end = await self._incoming.get()
        if data_or_end is None:
            return b""
        await self._send(Packet(Command.OKAY, self.local_id, self.remote_id))
        return data_or_end

    async def read_exactly(self, size: int) -> bytes:
        """Exactly `size` bytes.

        Raises:
            StreamClosedError: the host closed before they came.
        """
        parts: list[bytes] = []
        missing = size
        while missing:
            data = await self.read()
            if not data:
                raise StreamClosedError
            parts.append(data[:missing])
            self._pending = data[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    async def write(self, data: bytes) -> None:
        """Sends all of `data`, in payloads the host takes.

        Raises:
            StreamClosedError: the host has closed the stream.
        """
        async with self._write_lock:
            for start in range(0, len(data), self.max_payload):
                await self._write_allowed.wait()
                if self._closed.is_set():
                    raise StreamClosedError
                self._write_allowed.clear()
                payload = data[start : start + self.max_payload]
                await self._send(Packet(Command.WRTE, self.local_id, self.remote_id, payload))

    async def wait_acknowledged(self) -> None:
        """Waits until the host has taken everything written, or has closed."""
        await self._write_allowed.wait()

    async def wait_closed(self) -> None:
        """Waits until the host closes the stream or the connection ends."""
        await self._closed.wait()

    @property
    def closed(self) -> bool:
        """Whether the host has closed the stream."""
        return self._closed.is_set()

    def on_data(self, data: bytes) -> None:
        """A WRTE of the host has come.

        Raises:
            WireError: the last one was not acknowledged yet; ADB allows one at a time.
        """
        if not self._incoming.empty() and not self.closed:
            raise WireError(f"stream {self.local_id}: WRTE before the last one's OKAY")
        self._incoming.put_nowait(data)

    def on_okay(self) -> None:
        """The host has acknowledged our WRTE."""
        self._write_allowed.set()

    def on_close(self) -> None:
        """The host has closed, or the connection is gone: wakes every waiter."""
        self._closed.set()
        self._incoming.put_nowait(None)
        self._write_allowed.set()
