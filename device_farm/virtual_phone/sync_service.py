"""The `sync:` service: files of the virtual phone, versions 1 and 2 of STAT, LSTAT and LIST.

Public protocol description: packages/modules/adb/SYNC.TXT of the Android Open Source Project.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

from device_farm.virtual_phone import arm64_shim
from device_farm.virtual_phone.sandbox import ARM64_ROOT, QEMU, PathEscapeError, Sandbox
from device_farm.virtual_phone.stream import Stream

_REQUEST = struct.Struct("<4sI")
_STAT_1 = struct.Struct("<4sIII")  # id, mode, size, mtime
_STAT_2 = struct.Struct("<4sIQQIIIIQqqq")  # id, error, dev, ino, mode ... ctime
_DENT_1 = struct.Struct("<4sIIII")  # id, mode, size, mtime, name length
_DENT_2 = struct.Struct("<4sIQQIIIIQqqqI")  # as _STAT_2, then name length
_MAX_PATH = 1024
_MAX_DATA = 64 * 1024


class SyncRefusedError(Exception):
    """The request cannot be done; the message goes to the host."""


class SyncService:
    """One host's sync session."""

    def __init__(self, stream: Stream, sandbox: Sandbox) -> None:
        self._stream = stream
        self._sandbox = sandbox

    async def serve(self) -> None:
        """Answers requests until QUIT; a failed one ends the session, as hosts expect."""
        handlers = {
            b"STAT": self._stat_1,
            b"STA2": self._stat_2,
            b"LST2": self._lstat_2,
            b"LIST": self._list_1,
            b"LIS2": self._list_2,
            b"SEND": self._send,
            b"RECV": self._receive,
        }
        while True:
            request, size = await self._read_request()
            if request == b"QUIT":
                return
            try:
                if request not in handlers:
                    raise SyncRefusedError(f"unknown sync request {request!r}")
                if size > _MAX_PATH:
                    raise SyncRefusedError(f"path of {size} bytes, at most {_MAX_PATH}")
                path = await self._stream.read_exactly(size)
                await handlers[request](os.fsdecode(path))
            except (SyncRefusedError, PathEscapeError) as error:
                await self._fail(str(error))
                return
            except OSError as error:
                await self._fail(error.strerror or str(error))
                return

    async def _read_request(self) -> tuple[bytes, int]:
        request, size = _REQUEST.unpack(await self._stream.read_exactly(_REQUEST.size))
        return request, size

    async def _fail(self, message: str) -> None:
        text = message.encode()
        await self._stream.write(_REQUEST.pack(b"FAIL", len(text)) + text)

    async def _stat_1(self, path: str) -> None:
        # Version 1 is an lstat, and says "no such file" by zeros; it knows no other error.
        try:
            info = self._sandbox.resolve(path, follow_last=False).lstat()
        except (OSError, PathEscapeError):
            await self._stream.write(_STAT_1.pack(b"STAT", 0, 0, 0))
            return
        await self._stream.write(_STAT_1.pack(b"STAT", *_short(info)))

    async def _stat_2(self, path: str) -> None:
        await self._stream.write(_STAT_2.pack(b"STA2", *self._stat(path, follow=True)))

    async def _lstat_2(self, path: str) -> None:
        await self._stream.write(_STAT_2.pack(b"LST2", *self._stat(path, follow=False)))

    def _stat(self, path: str, *, follow: bool) -> tuple[int, ...]:
        try:
            return _long(self._sandbox.resolve(path, follow_last=follow).lstat())
        except PathEscapeError:
            return (errno.EACCES,) + (0,) * 10
        except OSError as error:
            return (error.errno or errno.EIO,) + (0,) * 10

    async def _list_1(self, path: str) -> None:
        for name, info in _entries(self._sandbox.resolve(path)):
            entry = _DENT_1.pack(b"DENT", *_short(info), len(name))
            await self._stream.write(entry + name)
        await self._stream.write(_DENT_1.pack(b"DONE", 0, 0, 0, 0))

    async def _list_2(self, path: str) -> None:
        for name, info in _entries(self._sandbox.resolve(path)):
            await self._stream.write(_DENT_2.pack(b"DNT2", *_long(info), len(name)) + name)
        await self._stream.write(_DENT_2.pack(b"DONE", *(0,) * 12))

    async def _receive(self, path: str) -> None:
        file = arm64_shim.original_of(self._sandbox.resolve(path))
        with file.open("rb") as source:
            while data := source.read(_MAX_DATA):
                await self._stream.write(_REQUEST.pack(b"DATA", len(data)) + data)
        await self._stream.write(_REQUEST.pack(b"DONE", 0))

    async def _send(self, path_and_mode: str) -> None:
        path, _, mode_text = path_and_mode.rpartition(",")
        try:
            target = self._send_target(path, mode_text)
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".push-")
        except (SyncRefusedError, PathEscapeError, OSError):
            # The host has begun to send and reads no answer before its end.
            await self._skip_data()
            raise
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as sink:
                modified_s = await self._copy_data(sink.write)
            part.chmod(stat.S_IMODE(int(mode_text)) & 0o777)
            os.utime(part, (modified_s, modified_s))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        if self._sandbox.translates_arm64:
            arm64_shim.wrap(target, QEMU, ARM64_ROOT)
        await self._stream.write(_REQUEST.pack(b"OKAY", 0))

    def _send_target(self, path: str, mode_text: str) -> Path:
        if not mode_text.isdecimal():
            raise SyncRefusedError(f"SEND without a file mode: {path!r}")
        if stat.S_IFMT(int(mode_text)) not in (0, stat.S_IFREG):
            raise SyncRefusedError("only regular files can be pushed to a virtual phone")
        target = self._sandbox.resolve(path)
        if target.is_dir():
            raise SyncRefusedError(f"{path}: is a directory")
        return target

    async def _skip_data(self) -> None:
        await self._copy_data(len)

    async def _copy_data(self, take: Callable[[bytes], object]) -> int:
        """Hands on the DATA chunks up to DONE; returns the modification time DONE carries."""
        failure: OSError | None = None
        while True:
            kind, size = await self._read_request()
            if kind == b"DONE":
                if failure:
                    raise failure
                return size
            if kind != b"DATA" or size > _MAX_DATA:
                raise SyncRefusedError(f"bad chunk {kind!r} of {size} bytes in SEND")
            data = await self._stream.read_exactly(size)
            try:
                if failure is None:
                    take(data)
            except OSError as error:  # a full disk: the host reads the answer after DONE only
                failure = error


def _entries(folder: Path) -> list[tuple[bytes, os.stat_result]]:
    if not folder.is_dir():
        return []
    found = [(b".", folder.lstat()), (b"..", folder.parent.lstat())]
    found += [(os.fsencode(child.name), child.lstat()) for child in sorted(folder.iterdir())]
    return found


def _short(info: os.stat_result) -> tuple[int, int, int]:
    limit = 0xFFFFFFFF
    return info.st_mode, info.st_size & limit, int(info.st_mtime) & limit


def _long(info: os.stat_result) -> tuple[int, ...]:
    return (
        0,  # no error
        info.st_dev,
        info.st_ino,
        info.st_mode,
        info.st_nlink,
        info.st_uid,
        info.st_gid,
        info.st_size,
        int(info.st_atime),
        int(info.st_mtime),
        int(info.st_ctime),
    )
