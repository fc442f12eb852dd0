"""Turning a fresh process into a confined one: limits, no network, no secrets, its own files.

Runs in the child of the fork server, before any code that touches a user's model. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import service.contracts
from workers import landlock

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000

KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "TVM_NUM_THREADS")
"""All a child may know of the worker's environment; no name of this project is among them."""

_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys")))

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class SandboxLimits:
    """What one job may use.

    Attributes:
        memory_bytes: address space of each process of the job.
        cpu_s: processor time of each process of the job.
        wall_s: time from start to end, kept by the parent.
        file_bytes: size of each file written.
        open_files: file descriptors of each process.
        require_isolation: fail the job rather than run it where the kernel cannot take away the
            network or other files.
        readable: what a job may read beside the system, Python and this program.
    """

    memory_bytes: int
    cpu_s: int
    wall_s: float
    file_bytes: int
    open_files: int
    require_isolation: bool
    readable: tuple[str, ...] = ()


class IsolationRefused(Exception):  # noqa: N818 - named for what happened
    """The kernel cannot confine a job as the limits ask."""


def hide_memory() -> None:
    """Closes this process's memory and /proc/<pid>/environ, where the tokens are, to its children.

    Holds against a confined child also when worker and child have the same user id.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def confine(work_dir: Path, limits: SandboxLimits) -> str:
    """Confines this process for good; its output goes to `child.log` in `work_dir`.

    The process must have one thread (the kernel's rule for a new user namespace).

    Returns:
        What was taken away and what could not be, for the log.

    Raises:
        IsolationRefused: see `SandboxLimits.require_isolation`.
        OSError: a limit could not be set.
    """
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    log = os.open(work_dir / "child.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, standard)
    os.close(log)
    os.close(nothing)
    os.chdir(work_dir)
    _set_environment(work_dir)
    _set_limits(limits)
    # Python ignores it; by default it ends the process, which the parent then sees and names.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    network = _leave_network(limits)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    return f"{network} {_leave_files(work_dir, limits)}"


def _set_environment(work_dir: Path) -> None:
    kept = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
    scratch = work_dir / "tmp"
    scratch.mkdir(exist_ok=True)
    os.environ.clear()
    os.environ.update(kept, HOME=str(work_dir), TMPDIR=str(scratch))


def _set_limits(limits: SandboxLimits) -> None:
    # The hard CPU limit is later than the soft one: SIGXCPU says why, SIGKILL would not.
    for kind, soft, hard in (
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 5),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(kind, (soft, hard))


def _leave_network(limits: SandboxLimits) -> str:
    # The user namespace comes first: it also takes root's capabilities away. Containers often
    # forbid it, but let root have a network namespace.
    for flags, what in (
        (_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC, "user, network and IPC namespaces"),
        (_CLONE_NEWNET | _CLONE_NEWIPC, "network and IPC namespaces"),
    ):
        if _libc.unshare(flags) == 0:
            return f"No network: own {what}."
    reason = os.strerror(ctypes.get_errno())
    return _tolerate(f"the kernel refused a network namespace ({reason})", limits)


def _leave_files(work_dir: Path, limits: SandboxLimits) -> str:
    if landlock.abi_version() == 0:
        return _tolerate("the kernel has no Landlock, so all files can be reached", limits)
    ours = [Path(__file__).parent, Path(service.contracts.__file__).parent]
    python = [sys.prefix, sys.base_prefix, *filter(_is_package_folder, sys.path)]
    readable = [*_SYSTEM, *map(Path, python), *ours, *map(Path, limits.readable)]
    landlock.restrict(readable, [work_dir, Path(os.devnull)])
    return "No files but its own."


def _is_package_folder(entry: str) -> bool:
    # Not the checkout's root: the service's keys and data may be below it.
    return Path(entry).name in ("site-packages", "dist-packages")


def _tolerate(lack: str, limits: SandboxLimits) -> str:
    if limits.require_isolation:
        raise IsolationRefused(f"Isolation is required, but {lack}.")
    return f"WARNING: {lack}."


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")
