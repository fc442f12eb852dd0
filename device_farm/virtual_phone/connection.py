"""One host's connection to the daemon: the handshake and the dispatch of packets to streams."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from device_farm.virtual_phone.stream import Stream, StreamClosedError
from device_farm.virtual_phone.wire import (
    MAX_PAYLOAD,
    VERSION,
    VERSION_CHECKSUM,
    Command,
    Packet,
    WireError,
    encode,
    read_packet,
)

log = logging.getLogger(__name__)

Service = Callable[[Stream], Awaitable[None]]
FindService = Callable[[str], Service | None]
"""Maps a destination such as `shell,v2,raw:ls` to its service; None: the phone has none."""


class Connection:
    """Serves one host until it goes away.

    Args:
        banner: identity sent in CNXN, `device::key=value;...`.
        find_service: see `FindService`.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        banner: str,
        find_service: FindService,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._banner = banner
        self._find_service = find_service
        self._version = VERSION_CHECKSUM
        self._max_payload = MAX_PAYLOAD
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_id = 1

    async def serve(self) -> None:
        """Handles packets until the host closes; a broken packet ends the connection, logged."""
        try:
            await self._handshake()
            while packet := await read_packet(
                self._reader, version=self._version, max_payload=self._max_payload
            ):
                await self._handle(packet)
        except WireError as error:
            log.warning("connection dropped: %s", error)
        except ConnectionError as error:
            log.info("connection lost: %s", error)
        finally:
            await self._shut_down()

    async def _handshake(self) -> None:
        # The version is not agreed on yet. A host that is new enough to skip checksums still
        # sends one here, but the protocol does not oblige it to: so it is not verified.
        packet = await read_packet(self._reader, version=VERSION)
        if packet is None or packet.command is not Command.CNXN:
            raise WireError("the first packet must be CNXN")
        self._version = min(packet.arg0, VERSION)
        self._max_payload = min(packet.arg1, MAX_PAYLOAD)
        if self._version < VERSION_CHECKSUM or self._max_payload <= 0:
            raise WireError(f"host speaks version {packet.arg0:#x}, payload {packet.arg1}")
        answer = Packet(Command.CNXN, VERSION, MAX_PAYLOAD, self._banner.encode())
        # Our CNXN carries a checksum for the same reason the host's does.
        self._writer.write(encode(answer, version=VERSION_CHECKSUM))
        await self._writer.drain()

    async def _send(self, packet: Packet) -> None:
        if self._writer.is_closing():
            raise StreamClosedError
        self._writer.write(encode(packet, version=self._version))
        await self._writer.drain()

    async def _handle(self, packet: Packet) -> None:
        if packet.command is Command.OPEN:
            await self._open(packet)
            return
        if packet.command is Command.CNXN:
            raise WireError("CNXN on a connection that is already up")
        stream = self._streams.get(packet.arg1)
        if stream is None:
            # A late packet of a stream we have closed: a CLSE needs no answer, others get one.
            if packet.command is Command.WRTE:
                await self._send(Packet(Command.CLSE, 0, packet.arg0))
            return
        if packet.command is Command.WRTE:
            stream.on_data(packet.payload)
        elif packet.command is Command.OKAY:
            stream.on_okay()
        else:
            stream.on_close()

    async def _open(self, packet: Packet) -> None:
        destination = packet.payload.rstrip(b"\0").decode(errors="replace")
        service = self._find_service(destination)
        if service is None:
            log.info("refused unknown service %r", destination)
            await self._send(Packet(Command.CLSE, 0, packet.arg0))
            return
        stream = Stream(self._next_id, packet.arg0, self._send, self._max_payload)
        self._next_id += 1
        self._streams[stream.local_id] = stream
        await self._send(Packet(Command.OKAY, stream.local_id, stream.remote_id))
        task = asyncio.create_task(self._run(service, stream), name=destination)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, service: Service, stream: Stream) -> None:
        try:
            await service(stream)
            await stream.wait_acknowledged()
        except (StreamClosedError, ConnectionError):
            log.debug("stream %d closed by the host", stream.local_id)
        except Exception:
            log.exception("service of stream %d failed", stream.local_id)
        finally:
            self._streams.pop(stream.local_id, None)
            with contextlib.suppress(StreamClosedError, ConnectionError):
                await self._send(Packet(Command.CLSE, stream.local_id, stream.remote_id))

    async def _shut_down(self) -> None:
        for stream in list(self._streams.values()):
            stream.on_close()
        # Services clean up after themselves (a shell kills its process group) on on_close.
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
