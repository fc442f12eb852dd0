"""The `shell:`, `shell,v2:` and `exec:` services: commands on the virtual phone.

There is no pseudo-terminal: an interactive shell works, without line editing or job control.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Coroutine
from enum import IntEnum
from typing import Any

from device_farm.virtual_phone.sandbox import Sandbox
from device_farm.virtual_phone.stream import Stream, StreamClosedError

_FRAME_HEADER = struct.Struct("<BI")
_MAX_STDIN_FRAME = 1024 * 1024


class Frame(IntEnum):
    """Packet ids of the shell protocol, version 2."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    EXIT = 3
    CLOSE_STDIN = 4
    WINDOW_SIZE = 5


async def serve_merged(stream: Stream, sandbox: Sandbox, command: str) -> None:
    """The old protocol: both outputs as one stream of bytes, no exit code."""
    process = await _start(sandbox, command, stderr=STDOUT)

    async def feed() -> None:
        while data := await stream.read():
            await _feed(process, data)
        _close_stdin(process)

    await _run(process, stream, feed(), forward(process.stdout, stream, None))


async def serve_framed(stream: Stream, sandbox: Sandbox, command: str) -> None:
    """The second protocol: the outputs apart, then the exit code."""
    process = await _start(sandbox, command, stderr=PIPE)

    async def feed() -> None:
        while True:
            kind, size = _FRAME_HEADER.unpack(await stream.read_exactly(_FRAME_HEADER.size))
            if size > _MAX_STDIN_FRAME:
                raise StreamClosedError
            data = await stream.read_exactly(size)
            if kind == Frame.STDIN:
                await _feed(process, data)
            elif kind == Frame.CLOSE_STDIN:
                _close_stdin(process)

    finished = await _run(
        process,
        stream,
        feed(),
        forward(process.stdout, stream, Frame.STDOUT),
        forward(process.stderr, stream, Frame.STDERR),
    )
    if finished:
        # As a shell reports it: a signal is 128 plus its number.
        code = process.returncode or 0
        status = code if code >= 0 else 128 - code
        await stream.write(_FRAME_HEADER.pack(Frame.EXIT, 1) + bytes([status & 0xFF]))


async def forward(source: asyncio.StreamReader | None, stream: Stream, frame: Frame | None) -> None:
    """Copies one output of the process to the host until it ends, framed or plain."""
    assert source is not None, "the process was started with pipes"
    room = stream.max_payload - _FRAME_HEADER.size
    while data := await source.read(room):
        header = b"" if frame is None else _FRAME_HEADER.pack(frame, len(data))
        await stream.write(header + data)


async def _start(sandbox: Sandbox, command: str, *, stderr: int) -> Process:
    arguments = ("-c", command) if command else ()
    return await asyncio.create_subprocess_exec(
        "/bin/sh",
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=stderr,
        cwd=sandbox.root,
        env=sandbox.environment(),
        start_new_session=True,
    )


async def _run(
    process: Process,
    stream: Stream,
    feed: Coroutine[Any, Any, object],
    *outputs: Coroutine[Any, Any, object],
) -> bool:
    """Runs the process to its end, or kills its group when the host goes away first.

    Returns:
        Whether the process ended by itself.
    """
    feeding = asyncio.create_task(_until_closed(feed))
    copying: asyncio.Future[Any] = asyncio.gather(*outputs, process.wait())
    leaving: asyncio.Future[Any] = asyncio.create_task(stream.wait_closed())
    try:
        await asyncio.wait({copying, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return copying.done() and copying.exception() is None
    finally:
        _kill_group(process)
        for task in (feeding, leaving, copying):
            task.cancel()
        await asyncio.gather(feeding, leaving, copying, return_exceptions=True)
        await process.wait()


async def _until_closed(feed: Coroutine[Any, Any, object]) -> None:
    with contextlib.suppress(StreamClosedError):
        await feed


async def _feed(process: Process, data: bytes) -> None:
    assert process.stdin is not None, "the process was started with pipes"
    # A command that does not read its input is no error; what it left unread is dropped.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()


def _close_stdin(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _kill_group(process: Process) -> None:
    # Also after a normal end: what the command left in the background goes with the connection.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
