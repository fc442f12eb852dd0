"""Virtual phones that the agent plays itself, as child processes."""

from __future__ import annotations

import json
import logging
import selectors
import subprocess
import sys
import time
from pathlib import Path

from device_farm.virtual_phone.profile import PhoneProfile, find_profile
from device_farm.virtual_phone.sandbox import missing_for

log = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0


class PhoneStartError(Exception):
    """A virtual phone did not come up; the message says why."""


class VirtualPhone:
    """One virtual phone; `start` it again when it has died.

    Args:
        label: its name within this agent.
        profile_name: a shipped profile, or a TOML file.
        folder: where its files are; kept between starts, as a phone keeps its storage.
        simulator_dir: NNAPI simulators by target.

    Raises:
        ProfileError: the profile is missing or not valid.
    """

    def __init__(self, label: str, profile_name: str, folder: Path, simulator_dir: Path) -> None:
        self.label = label
        self.profile: PhoneProfile = find_profile(profile_name)
        self._profile_name = profile_name
        self._folder = folder
        self._simulator_dir = simulator_dir
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def missing(self) -> str:
        """Why this machine cannot play it, in one sentence; empty when it can."""
        return missing_for(self.profile, self._simulator_dir)

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> str:
        """Starts it.

        Returns:
            The address to connect to.

        Raises:
            PhoneStartError: it ended, or said nothing in time.
        """
        self.stop()
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "device_farm.virtual_phone", self._profile_name]
        command += ["--root", str(self._folder / "root"), "--follow-stdin"]
        command += ["--simulator", str(self._simulator_dir)]
        with (self._folder / "phone.log").open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        try:
            return self._read_address(self._process)
        except PhoneStartError:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends it, if it is there."""
        if self._process is None:
            return
        self._process.terminate()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()
        self._process = None

    def _read_address(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None, "started with a pipe"
        deadline = time.monotonic() + _START_TIMEOUT_S
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(deadline - time.monotonic()):
                raise PhoneStartError(f"{self.label}: not up in {_START_TIMEOUT_S:g} s")
        line = process.stdout.readline()
        if not line:
            words = (self._folder / "phone.log").read_text(errors="replace").strip()
            raise PhoneStartError(f"{self.label}: {words.splitlines()[-1] if words else 'ended'}")
        return str(json.loads(line)["serial"])


def make_phones(
    names: tuple[str, ...], folder: Path, simulator_dir: Path
) -> tuple[VirtualPhone, ...]:
    """The phones of a list of profiles, not started; a name given twice gives two phones.

    Raises:
        ProfileError: see `VirtualPhone`.
    """
    phones = []
    for position, name in enumerate(names):
        stem = Path(name).stem
        earlier = sum(Path(other).stem == stem for other in names[:position])
        label = f"{stem}-{earlier + 1}" if earlier else stem
        phones.append(VirtualPhone(label, name, folder / label, simulator_dir))
    return tuple(phones)
