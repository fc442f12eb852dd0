"""A virtual phone's profile: the TOML file, checked, and its form for the simulator."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from service.contracts.targets import MAX_FEATURE_LEVEL, MIN_FEATURE_LEVEL, Abi

PROFILES_DIR = Path(__file__).parents[1] / "simulator" / "profiles"

# The simulator's form separates fields by blanks, so names have none.
Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.+-]+$")]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class ProfileError(Exception):
    """The profile is missing or not valid; the message says what to mend."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NnapiDeviceType(StrEnum):
    """ANeuralNetworksDevice types."""

    OTHER = "other"
    CPU = "cpu"
    GPU = "gpu"
    ACCELERATOR = "accelerator"


class Quirks(_Table):
    """Faults of one device's driver; runs are counted from 1 in each process, 0 is never."""

    fail_operations: tuple[Word, ...] = ()
    wrong_operations: tuple[Word, ...] = ()
    crash_at_run: Count = 0
    hang_at_run: Count = 0
    out_of_memory_at_run: Count = 0
    first_run_us: NonNegative = 0
    ignore_cache: bool = False

    def statements(self, device: str) -> list[str]:
        """What of it is not the default, for the simulator."""
        numbers = self.model_dump(
            exclude={"fail_operations", "wrong_operations", "ignore_cache"}, exclude_defaults=True
        )
        return [
            *(f"quirk {device} fail {operation}" for operation in self.fail_operations),
            *(f"quirk {device} wrong {operation}" for operation in self.wrong_operations),
            *(f"quirk {device} {name} {value:.15g}" for name, value in numbers.items()),
            *([f"quirk {device} ignore_cache 1"] if self.ignore_cache else []),
        ]


class NnapiDevice(_Table):
    """One NNAPI device; the CPU reference device is always there and needs no entry."""

    name: Word
    type: NnapiDeviceType
    version: Word
    feature_level: int = Field(ge=MIN_FEATURE_LEVEL, le=MAX_FEATURE_LEVEL)
    deny_operations: tuple[Word, ...] = ()
    deny_types: tuple[Word, ...] = ()
    max_rank: int = Field(default=0, ge=0, description="0: any")
    relaxed_float16: bool = Field(
        default=False, description="Rounds each result of a relaxed model to float16"
    )
    extensions: tuple[Word, ...] = Field((), description="Vendor extensions; level 3")
    quirks: Quirks = Quirks()

    def statements(self) -> list[str]:
        """The device for the simulator, one statement a line."""
        return [
            f"device {self.name} {self.type} {self.version} {self.feature_level}",
            *(f"deny {self.name} {operation}" for operation in self.deny_operations),
            *(f"deny_type {self.name} {operand_type}" for operand_type in self.deny_types),
            *([f"max_rank {self.name} {self.max_rank}"] if self.max_rank else []),
            *([f"relaxed_float16 {self.name}"] if self.relaxed_float16 else []),
            *(f"extension {self.name} {extension}" for extension in self.extensions),
            *self.quirks.statements(self.name),
        ]


class LatencyModel(_Table):
    """Modelled speed of the accelerator; 0 leaves a term out."""

    per_execution_us: NonNegative = 0
    per_operation_us: NonNegative = 0
    macs_per_us: NonNegative = 0
    bytes_per_us: NonNegative = 0
    compile_per_operation_us: NonNegative = 0


class Thermal(_Table):
    """Slower after long work, until idle for as long; counted in each process."""

    throttle_after_us: NonNegative = 0
    slowdown: float = Field(default=1, ge=1)


class Battery(_Table):
    """What `dumpsys battery` answers."""

    percent: int = Field(ge=0, le=100)
    charging: bool
    temperature_c: float


class PhoneProfile(_Table):
    """See docs/reference/virtual-phone.md."""

    name: Word
    description: str
    abi: Abi
    sdk_level: int = Field(ge=27, description="NNAPI came with API level 27")
    feature_level: int = Field(ge=0, le=MAX_FEATURE_LEVEL)
    device: tuple[NnapiDevice, ...] = ()
    forbid_extensions: bool = Field(
        default=False, description="The runner is not on the phone's list of who may use extensions"
    )
    latency: LatencyModel = LatencyModel()
    thermal: Thermal = Thermal()
    battery: Battery

    def render(self) -> str:
        """The file the simulator reads, one statement a line."""
        lines = [f"feature_level {self.feature_level}"]
        for device in self.device:
            lines += device.statements()
        if self.forbid_extensions:
            lines.append("forbid_extensions")
        for term, value in self.latency.model_dump().items():
            lines.append(f"latency {term} {value:.15g}")
        for term, value in self.thermal.model_dump(exclude_defaults=True).items():
            lines.append(f"thermal {term} {value:.15g}")
        return "\n".join(lines) + "\n"


def load_profile(path: Path) -> PhoneProfile:
    """Reads and checks one profile.

    Raises:
        ProfileError: no such file, not TOML, an unknown key, or a value out of range.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: not TOML: {error}") from error
    try:
        profile = PhoneProfile.model_validate(table)
    except ValidationError as error:
        raise ProfileError(f"{path}: {_sentences(error)}") from error
    if profile.abi is Abi.ARMEABI_V7A:
        raise ProfileError(f"{path}: abi: virtual phones are x86_64 or arm64-v8a")
    if profile.feature_level == 0 and profile.device:
        raise ProfileError(f"{path}: device: a phone without NNAPI (feature_level 0) has none")
    return profile


def find_profile(name: str) -> PhoneProfile:
    """A shipped profile by its name, or any other by the path of its file.

    Raises:
        ProfileError: see `load_profile`; for an unknown name it lists those there are.
    """
    if name.endswith(".toml"):
        return load_profile(Path(name))
    if name not in profile_names():
        raise ProfileError(f"no profile {name!r}; there are: {', '.join(profile_names())}")
    return load_profile(PROFILES_DIR / f"{name}.toml")


def profile_names() -> tuple[str, ...]:
    """Names of the shipped profiles, sorted."""
    return tuple(sorted(path.stem for path in PROFILES_DIR.glob("*.toml")))


def _sentences(error: ValidationError) -> str:
    def sentence(location: tuple[int | str, ...], kind: str, message: str) -> str:
        key = ".".join(str(part) for part in location)
        return f"{key}: unknown key" if kind == "extra_forbidden" else f"{key}: {message}"

    return "; ".join(sentence(e["loc"], e["type"], e["msg"]) for e in error.errors())
