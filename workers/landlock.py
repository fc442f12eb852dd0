"""Landlock: a process gives up files, TCP and signals it has no use for, for good.

Linux 5.13 and later; what a kernel does not know yet is left out (see landlock(7), whose names the
constants have). Needs no privilege.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE
# Bits 0 to 12 since ABI 1; REFER, TRUNCATE and IOCTL_DEV came later, one at a time.
_FS_BITS_BY_ABI = ((1, 13), (2, 14), (3, 15), (5, 16))
_NET_ABI, _NET_BIND_AND_CONNECT_TCP = 4, 0b11
_SCOPE_ABI, _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 6, 0b11

_libc = ctypes.CDLL(None, use_errno=True)


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi_version() -> int:
    """The kernel's version of Landlock; 0: it has none, or it is switched off."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)))


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Leaves this process and its children nothing but these files and folders.

    TCP and signals to processes outside are gone too where the kernel can do that, and with them
    the memory and environment of processes outside (/proc/<pid>). `no_new_privs` must be set.

    Args:
        readable: to read and execute; a path that is not there is left out.
        writable: for everything; must be there.

    Raises:
        OSError: the kernel refused.
    """
    abi = abi_version()
    access = (1 << max(bits for since, bits in _FS_BITS_BY_ABI if since <= abi)) - 1
    attr = _RulesetAttr(
        access,
        _NET_BIND_AND_CONNECT_TCP if abi >= _NET_ABI else 0,
        _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if abi >= _SCOPE_ABI else 0,
    )
    size = 24 if abi >= _SCOPE_ABI else 16 if abi >= _NET_ABI else 8
    ruleset = _check(_libc.syscall(_CREATE_RULESET, ctypes.byref(attr), size, 0))
    try:
        for path in readable:
            with suppress(FileNotFoundError):
                _allow(ruleset, path, _READ)
        for path in writable:
            _allow(ruleset, path, access)
        _check(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, access: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        allowed = access if path.is_dir() else access & _FILE_ONLY
        rule = _PathBeneathAttr(allowed, descriptor)
        _check(_libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return result
