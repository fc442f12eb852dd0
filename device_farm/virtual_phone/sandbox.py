"""A virtual phone's file system and environment: one folder that looks enough like Android.

This separates phones from each other and catches wrong paths; it is no security border. Commands
run with the rights of whoever started the phone, which listens on loopback only.
"""

from __future__ import annotations

from pathlib import Path

from device_farm.virtual_phone.profile import PhoneProfile
from service.contracts.targets import Abi

QEMU = Path("/usr/bin/qemu-aarch64-static")
ARM64_ROOT = Path("/usr/aarch64-linux-gnu")
ARM64_PACKAGES = "qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross"

SIMULATOR_LIBRARY = "libneuralnetworks.so"
_TARGETS = {Abi.X86_64: "linux-x86_64", Abi.ARM64_V8A: "linux-aarch64"}
_LIBC_FOLDERS = {
    Abi.X86_64: (Path("/lib/x86_64-linux-gnu"), Path("/lib64"), Path("/usr/lib64")),
    Abi.ARM64_V8A: (ARM64_ROOT / "lib",),
}

_GETPROP = """#!/bin/sh
# getprop: all properties; getprop NAME [DEFAULT]: one value
props={props}
if [ $# -eq 0 ]; then
    sed -e 's/^\\([^=]*\\)=\\(.*\\)$/[\\1]: [\\2]/' "$props"
    exit 0
fi
while IFS='=' read -r key value; do
    if [ "$key" = "$1" ]; then
        echo "$value"
        exit 0
    fi
done < "$props"
echo "$2"
"""

_DUMPSYS = """#!/bin/sh
if [ $# -eq 1 ] && [ -f "{services}/$1" ]; then
    exec cat "{services}/$1"
fi
echo "Can't find service: $1" >&2
exit 1
"""


class SandboxError(Exception):
    """The phone cannot be set up on this machine; the message says what is missing."""


class PathEscapeError(Exception):
    """A path leads outside of the phone."""


def missing_for(profile: PhoneProfile, simulator_dir: Path) -> str:
    """Why this machine cannot play the phone, in one sentence; empty when it can."""
    if profile.abi is Abi.ARM64_V8A and not (QEMU.exists() and (ARM64_ROOT / "lib").is_dir()):
        return f"arm64 virtual phones need the Debian packages {ARM64_PACKAGES}"
    if profile.feature_level and not _simulator_library(profile, simulator_dir).is_file():
        target = _TARGETS[profile.abi]
        return (
            f"the NNAPI simulator is not built for {target}: "
            f"run python -m device_farm.simulator.build {target}"
        )
    return ""


class Sandbox:
    """The folder of one phone, made ready on construction.

    Raises:
        SandboxError: something of the machine is missing (see `missing_for`).
    """

    def __init__(self, root: Path, profile: PhoneProfile, simulator_dir: Path) -> None:
        if reason := missing_for(profile, simulator_dir):
            raise SandboxError(reason)
        self.root = root.resolve()
        self.profile = profile
        self.tmp = self.root / "data" / "local" / "tmp"
        self._bin = self.root / "system" / "bin"
        self._lib = self.root / "system" / "lib64"
        self._services = self.root / "system" / "services"
        self._sim_profile = self.root / "system" / "nnfarm_sim_profile"
        for folder in (self.tmp, self._bin, self._lib, self._services):
            folder.mkdir(parents=True, exist_ok=True)
        self._write_properties()
        self._write_services()
        self._link_libraries(simulator_dir.resolve())

    @property
    def translates_arm64(self) -> bool:
        """Whether pushed aarch64 executables are started through qemu."""
        return self.profile.abi is Abi.ARM64_V8A

    def environment(self) -> dict[str, str]:
        """The whole environment of a shell on the phone."""
        return {
            "HOME": str(self.tmp),
            "PATH": f"{self._bin}:/usr/bin:/bin",
            "TMPDIR": str(self.tmp),
            "LD_LIBRARY_PATH": str(self._lib),
            "NNFARM_SIM_PROFILE": str(self._sim_profile),
            "LANG": "C.UTF-8",
        }

    def resolve(self, path: str, *, follow_last: bool = True) -> Path:
        """The real path of a path on the phone.

        Args:
            path: absolute, or relative to the phone's root folder.
            follow_last: whether a symbolic link at the end is followed.

        Raises:
            PathEscapeError: it is outside of the phone, by `..` or through a symbolic link.
        """
        joined = self.root / path
        parent = joined.parent.resolve()
        real = joined.resolve() if follow_last or joined.name == ".." else parent / joined.name
        if not real.is_relative_to(self.root):
            raise PathEscapeError(f"{path}: outside of the virtual phone's folder {self.root}")
        return real

    def _write_properties(self) -> None:
        profile = self.profile
        properties = {
            "ro.product.name": profile.name,
            "ro.product.model": "nnfarm virtual phone",
            "ro.product.cpu.abi": profile.abi.value,
            "ro.product.cpu.abilist": profile.abi.value,
            "ro.build.version.sdk": str(profile.sdk_level),
            "ro.nnfarm.virtual": "1",
        }
        file = self.root / "system" / "build.prop"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        _write_script(self._bin / "getprop", _GETPROP.format(props=_quoted(file)))

    def _write_services(self) -> None:
        battery = self.profile.battery
        status = 2 if battery.charging else 3  # BatteryManager: CHARGING, DISCHARGING
        (self._services / "battery").write_text(
            "Current Battery Service state:\n"
            f"  AC powered: {str(battery.charging).lower()}\n"
            "  USB powered: false\n"
            "  Wireless powered: false\n"
            f"  status: {status}\n"
            "  present: true\n"
            f"  level: {battery.percent}\n"
            "  scale: 100\n"
            f"  temperature: {round(battery.temperature_c * 10)}\n"
        )
        (self._services / "thermalservice").write_text(
            "IsStatusOverride: false\nThermalEventListeners:\nThermalStatus: 0\n"
        )
        script = _DUMPSYS.replace("{services}", str(self._services))
        _write_script(self._bin / "dumpsys", script)
        self._sim_profile.write_text(self.profile.render())

    def _link_libraries(self, simulator_dir: Path) -> None:
        # Libraries linked for Android need libc.so and libm.so, names that glibc gives to linker
        # scripts: so the phone has links of those names to the real ones.
        for name in ("libc", "libm"):
            _link(self._lib / f"{name}.so", _find_glibc(self.profile.abi, f"{name}.so.6"))
        library = self._lib / SIMULATOR_LIBRARY
        if self.profile.feature_level:
            _link(library, _simulator_library(self.profile, simulator_dir))
        else:
            library.unlink(missing_ok=True)


def _simulator_library(profile: PhoneProfile, simulator_dir: Path) -> Path:
    return simulator_dir / _TARGETS[profile.abi] / SIMULATOR_LIBRARY


def _find_glibc(abi: Abi, name: str) -> Path:
    for folder in _LIBC_FOLDERS[abi]:
        if (folder / name).exists():
            return folder / name
    folders = ", ".join(str(folder) for folder in _LIBC_FOLDERS[abi])
    raise SandboxError(f"{name} is in none of {folders}; virtual phones need glibc")


def _link(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"
