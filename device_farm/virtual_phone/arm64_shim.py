"""Makes pushed aarch64 executables start on this machine's processor, through qemu-user.

An executable `NAME` becomes `.NAME.aarch64`, and `NAME` a small script that starts it. The script
is padded with zeros to the executable's size, so that a host which compares sizes finds what it
pushed; pulling it gives back the original bytes.
"""

from __future__ import annotations

import os
import shlex
import struct
from pathlib import Path

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_ET_EXEC, _ET_DYN = 2, 3
_EM_AARCH64 = 183
_PT_INTERP = 3


def original_of(path: Path) -> Path:
    """Where the bytes pushed as `path` are."""
    original = path.with_name(f".{path.name}.aarch64")
    return original if original.exists() else path


def wrap(path: Path, qemu: Path, arm64_root: Path) -> None:
    """Turns the executable into a shim beside it; leaves any other file as it is.

    The shim finds the executable by its own folder: a folder may be moved as a whole.
    """
    original = path.with_name(f".{path.name}.aarch64")
    original.unlink(missing_ok=True)
    if not is_aarch64_executable(path):
        return
    size, mode = path.stat().st_size, path.stat().st_mode
    path.rename(original)
    start = f"{qemu} -L {arm64_root}"
    script = f'#!/bin/sh\nexec {start} "${{0%/*}}"/{shlex.quote(original.name)} "$@"\n'
    path.write_text(script)
    os.truncate(path, max(size, len(script)))
    path.chmod(mode)


def is_aarch64_executable(path: Path) -> bool:
    """Whether the file is an aarch64 ELF program, static or dynamic, and not a library."""
    with path.open("rb") as file:
        raw = file.read(_ELF_HEADER.size)
        if len(raw) < _ELF_HEADER.size or not raw.startswith(_ELF64_LITTLE_ENDIAN):
            return False
        header = _ELF_HEADER.unpack(raw)
        kind, machine, segments_at = header[1], header[2], header[5]
        entry_size, entry_count = header[9], header[10]
        if machine != _EM_AARCH64 or kind not in (_ET_EXEC, _ET_DYN):
            return False
        if kind == _ET_EXEC:
            return True
        # Position-independent programs and libraries differ in asking for a dynamic linker.
        file.seek(segments_at)
        table = file.read(entry_size * entry_count)
    starts = range(0, len(table) - 3, entry_size) if entry_size else range(0)
    return any(struct.unpack_from("<I", table, at)[0] == _PT_INTERP for at in starts)
