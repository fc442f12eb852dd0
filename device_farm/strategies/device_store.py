"""The farm's folder on a phone: content-addressed parts, runtime bundles, one folder a run.

`${TMPDIR:-/data/local/tmp}/nnfarm/{parts,bundles,caches,runs}`. What is there is not sent again: a
file gets its final name only when it is whole, and its size is compared each time.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from device_farm.protocols.device import DeviceProtocol, StorageFullError, TransferError
from device_farm.resources.bundles import RUNNER, RuntimeBundle

_COMMAND_TIMEOUT_S = 60.0
_MAX_PARTS_BYTES = 2 * 1024**3  # a phone's storage is its owner's
_MAX_CACHES_BYTES = 256 * 1024**2


@dataclass(frozen=True)
class StoredPart:
    """A file to have on the phone under its hash."""

    sha256: str
    local: Path


@dataclass(frozen=True)
class CompilationCache:
    """NNAPI's compilation cache of one artifact on the phone."""

    path: str
    is_warm: bool
    """An earlier run has filled it; else the runner makes the folder."""


class DeviceStore:
    """Puts files on one phone and finds them again."""

    def __init__(self, device: DeviceProtocol) -> None:
        self._device = device
        self._base = self._command('echo "${TMPDIR:-/data/local/tmp}/nnfarm"').strip()
        self._command(f"mkdir -p {self._quoted('parts')} {self._quoted('bundles')}")

    def path(self, *names: str) -> str:
        """The path on the phone of something in the farm's folder."""
        return "/".join((self._base, *names))

    def put_parts(self, parts: tuple[StoredPart, ...]) -> None:
        """Has all parts on the phone; when it is full, forgets others and tries once more.

        Raises:
            StorageFullError: there is no room even then.
            TransferError: a part did not arrive whole.
            DeviceLostError: the phone went away.
        """
        if sum(self._sizes(self.path("parts")).values()) > _MAX_PARTS_BYTES:
            self._forget_parts()
        try:
            self._put_parts(parts)
        except StorageFullError:
            self._forget_parts()
            self._put_parts(parts)

    def put_bundle(self, bundle: RuntimeBundle) -> str:
        """Has the runtime bundle on the phone.

        Returns:
            Its folder there; errors as `put_parts`.
        """
        family = self.path("bundles", f"{bundle.target}.")
        folder = family + bundle.id
        wanted = {file.name: file.stat().st_size for file in bundle.files}
        if self._sizes(folder).items() >= wanted.items():
            return folder
        partial = f"{folder}.partial"
        self._command(f"rm -rf {_q(family)}*")  # older builds, and what a lost phone left
        for file in bundle.files:
            self._device.push(file, f"{partial}/{file.name}")
        self._check_sizes(partial, wanted)
        self._command(f"chmod 755 {_q(partial)}/{RUNNER} && mv {_q(partial)} {_q(folder)}")
        return folder

    def compilation_cache(self, key: str) -> CompilationCache:
        """The cache of what is named by `key`, a plain name; all are forgotten when they are large.

        Raises:
            TransferError, DeviceLostError: the phone does not answer as it should.
        """
        caches = self._quoted("caches")
        if sum(self._sizes(self.path("caches")).values()) > _MAX_CACHES_BYTES:
            self._command(f"rm -rf {caches}")
        folder = self._quoted("caches", key)
        found = self._command(f"mkdir -p {caches} && (ls -d {folder} 2>/dev/null || true)")
        return CompilationCache(self.path("caches", key), bool(found.strip()))

    def forget_cache(self, cache: CompilationCache) -> None:
        """Removes a cache that a failed run may have left half filled."""
        self._command(f"rm -rf {_q(cache.path)}")

    def make_run_folder(self, run_id: str, members: dict[str, StoredPart], file: Path) -> str:
        """A fresh folder that has the members as links to parts, and the file that names them.

        Returns:
            The folder's path on the phone.
        """
        folder = self.path("runs", run_id)
        # A phone has one run at a time: other folders are of runs that ended with its connection.
        lines = [f"rm -rf {self._quoted('runs')}", f"mkdir -p {_q(folder)}"]
        for name, part in members.items():
            target = self.path("parts", part.sha256)
            lines.append(f"ln -s {_q(target)} {_q(folder)}/{_q(name)}")
        self._command(" && ".join(lines))
        self._device.push(file, f"{folder}/{file.name}")
        return folder

    def remove_run_folder(self, run_id: str) -> None:
        """Forgets what a run left."""
        self._command(f"rm -rf {self._quoted('runs', run_id)}")

    def _forget_parts(self) -> None:
        parts = self._quoted("parts")
        self._command(f"rm -rf {parts} {self._quoted('caches')} && mkdir -p {parts}")

    def _put_parts(self, parts: tuple[StoredPart, ...]) -> None:
        there = self._sizes(self.path("parts"))
        for part in parts:
            size = part.local.stat().st_size
            if there.get(part.sha256) == size:
                continue
            target = self.path("parts", part.sha256)
            self._device.push(part.local, f"{target}.partial")
            self._check_sizes(self.path("parts"), {f"{part.sha256}.partial": size})
            self._command(f"mv -f {_q(target)}.partial {_q(target)}")

    def _check_sizes(self, folder: str, wanted: dict[str, int]) -> None:
        found = self._sizes(folder)
        for name, size in wanted.items():
            if found.get(name) != size:
                raise TransferError(f"{folder}/{name}: {found.get(name)} bytes, {size} were sent")

    def _sizes(self, folder: str) -> dict[str, int]:
        """Size of every file in a folder; nothing when there is no folder."""
        listing = "find . -type f -exec stat -c '%s %n' {} +"
        result = self._device.run(
            f"[ ! -d {_q(folder)} ] || (cd {_q(folder)} && {listing})",
            timeout_s=_COMMAND_TIMEOUT_S,
        )
        if result.exit_code:
            raise TransferError(f"{folder}: cannot be listed: {result.stderr.strip()}")
        entries = (line.split(" ", 1) for line in result.stdout.splitlines())
        return {name.removeprefix("./"): int(size) for size, name in entries}

    def _command(self, command: str) -> str:
        result = self._device.run(command, timeout_s=_COMMAND_TIMEOUT_S)
        if result.exit_code:
            raise TransferError(f"{command}: {result.stderr.strip() or result.exit_code}")
        return result.stdout

    def _quoted(self, *names: str) -> str:
        return _q(self.path(*names))


def with_libraries(bundle: str, command: str) -> str:
    """A shell command that runs `command` with the bundle's libraries.

    The runner names its own folder for them; the variable serves linkers that do not read that, and
    the libraries a model's library needs. What the phone's shell has set already stays.
    """
    return (
        f"export LD_LIBRARY_PATH={shlex.quote(bundle)}"
        f'"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" && exec {command}'
    )


def _q(text: str) -> str:
    return shlex.quote(text)
