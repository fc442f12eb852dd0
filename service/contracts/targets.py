"""What a model is compiled for: NNAPI feature levels and Android ABIs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import NamedTuple

from service.contracts.errors import NnfarmError

MIN_FEATURE_LEVEL = 1
MAX_FEATURE_LEVEL = 8

ANDROID_RELEASE_BY_LEVEL: dict[int, str] = {
    1: "Android 8.1 (API 27)",
    2: "Android 9 (API 28)",
    3: "Android 10 (API 29)",
    4: "Android 11 (API 30)",
    5: "Android 12 (API 31)",
    6: "NNAPI feature level 6 (updatable)",
    7: "NNAPI feature level 7 (updatable)",
    8: "NNAPI feature level 8 (updatable)",
}


class Abi(StrEnum):
    """Android ABIs an artifact can be built for (NDK names)."""

    ARM64_V8A = "arm64-v8a"
    ARMEABI_V7A = "armeabi-v7a"
    X86_64 = "x86_64"


class CpuVariant(StrEnum):
    """Processors beyond an ABI's baseline that the code for the CPU can be built for as well."""

    DOTPROD = "dotprod"  # arm64-v8a: Cortex-A55, A76 and later
    FP16 = "fp16"  # arm64-v8a: the same; float16 models are computed in float16
    I8MM = "i8mm"  # arm64-v8a: Cortex-A510, A710, X2 and later
    AVX2 = "avx2"  # x86_64: Haswell, Zen and later
    AVX512 = "avx512"  # x86_64: Ice Lake, Zen 4 and later


class CpuRequirement(NamedTuple):
    """Which devices can run a variant.

    Attributes:
        abi: the variant's.
        features: what the processor must have, named as Linux does in /proc/cpuinfo.
    """

    abi: Abi
    features: tuple[str, ...]


_AVX2 = ("avx2", "fma", "f16c")

CPU_REQUIREMENTS: dict[CpuVariant, CpuRequirement] = {
    CpuVariant.DOTPROD: CpuRequirement(Abi.ARM64_V8A, ("asimddp",)),
    CpuVariant.FP16: CpuRequirement(Abi.ARM64_V8A, ("asimddp", "asimdhp")),
    CpuVariant.I8MM: CpuRequirement(Abi.ARM64_V8A, ("asimddp", "i8mm")),
    CpuVariant.AVX2: CpuRequirement(Abi.X86_64, _AVX2),
    CpuVariant.AVX512: CpuRequirement(
        Abi.X86_64,
        (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"),
    ),
}
"""The slower variants of an ABI before the faster ones."""


def variants_of(abi: Abi, asked: Iterable[CpuVariant]) -> tuple[CpuVariant, ...]:
    """Those of the variants asked for that are the ABI's, the slower before the faster ones."""
    wanted = set(asked)
    return tuple(v for v, needs in CPU_REQUIREMENTS.items() if needs.abi is abi and v in wanted)


def require_usable(variants: Iterable[CpuVariant], abis: Collection[str]) -> None:
    """Check that every variant belongs to an ABI that is asked for.

    Raises:
        NnfarmError: `compile.bad_option`.
    """
    for variant in variants:
        abi = CPU_REQUIREMENTS[variant].abi
        if abi not in abis:
            raise NnfarmError(
                "compile.bad_option",
                f"The CPU variant {variant} is one of {abi}, which is not asked for.",
                cpu_variant=variant.value,
            )
