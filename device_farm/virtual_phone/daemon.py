"""The virtual phone itself: a TCP listener on loopback that hosts connect to with adb."""

from __future__ import annotations

import asyncio
from functools import partial

from device_farm.virtual_phone.connection import Connection, Service
from device_farm.virtual_phone.sandbox import Sandbox
from device_farm.virtual_phone.shell_service import serve_framed, serve_merged
from device_farm.virtual_phone.stream import Stream
from device_farm.virtual_phone.sync_service import SyncService

FEATURES = ("shell_v2", "stat_v2", "ls_v2", "fixed_push_mkdir")
"""What the banner promises: nothing the daemon does not do."""


class Daemon:
    """A device-side ADB daemon, without authentication, on 127.0.0.1 only."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> int:
        """Listens, on a free port when `port` is 0.

        Returns:
            The port.

        Raises:
            OSError: the port is taken.
        """
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Stops listening and drops every connection, with the commands they run."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio runs each connection in a task"
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        await Connection(reader, writer, self._banner(), self._find_service).serve()

    def _banner(self) -> str:
        profile = self._sandbox.profile
        return (
            f"device::ro.product.name={profile.name};ro.product.model=nnfarm virtual phone;"
            f"ro.product.device={profile.name};features={','.join(FEATURES)}"
        )

    def _find_service(self, destination: str) -> Service | None:
        service, _, argument = destination.partition(":")
        name, *options = service.split(",")
        if name == "shell" and "v2" in options:
            return partial(serve_framed, sandbox=self._sandbox, command=argument)
        if name in ("shell", "exec"):
            return partial(serve_merged, sandbox=self._sandbox, command=argument)
        if name == "sync":
            return self._serve_sync
        return None

    async def _serve_sync(self, stream: Stream) -> None:
        await SyncService(stream, self._sandbox).serve()
