"""What TVM compiles for, per Android ABI: what every device of it has, or a variant's more."""

from __future__ import annotations

from typing import Any

from service.contracts.targets import Abi, CpuVariant

MIN_API_LEVEL = 27
"""Android 8.1, the first release with NNAPI."""

# The vendor field must be spelled: LLVM does not normalise triples, and in "aarch64-linux-android"
# it takes "linux" for the vendor. It then does not know that this is Android and allocates x18,
# which the platform reserves for the shadow call stack.
_TRIPLES: dict[Abi, str] = {
    Abi.ARM64_V8A: f"aarch64-unknown-linux-android{MIN_API_LEVEL}",
    Abi.ARMEABI_V7A: f"armv7a-unknown-linux-androideabi{MIN_API_LEVEL}",
    Abi.X86_64: f"x86_64-unknown-linux-android{MIN_API_LEVEL}",
}

# The baselines of https://developer.android.com/ndk/guides/abis.
_CPUS: dict[Abi, dict[str, Any]] = {
    Abi.ARM64_V8A: {"mcpu": "generic", "mattr": ["+v8a", "+neon"]},
    # softfp: floats travel in integer registers between functions and are computed in VFP ones.
    Abi.ARMEABI_V7A: {"mcpu": "generic", "mattr": ["+vfp3", "+neon"], "mfloat-abi": "soft"},
    Abi.X86_64: {"mcpu": "x86-64", "mattr": ["+sse4.2", "+popcnt"]},
}


def triple_for(abi: Abi) -> str:
    """LLVM's triple of an ABI, with the least API level."""
    return _TRIPLES[abi]


# LLVM's names of what CPU_REQUIREMENTS lists. No architecture version is named: it would allow
# instructions that the requirements do not ask the device for.
_AVX2 = ("+avx2", "+fma", "+f16c")
_FEATURES: dict[CpuVariant, tuple[str, ...]] = {
    CpuVariant.DOTPROD: ("+dotprod",),
    CpuVariant.FP16: ("+dotprod", "+fullfp16"),
    CpuVariant.I8MM: ("+dotprod", "+i8mm"),
    CpuVariant.AVX2: _AVX2,
    CpuVariant.AVX512: (
        *_AVX2,
        *("+avx512f", "+avx512bw", "+avx512dq", "+avx512vl", "+avx512vnni"),
    ),
}


def target_for(abi: Abi, variant: CpuVariant | None = None) -> dict[str, Any]:
    """The dictionary `tvm.target.Target` takes.

    Args:
        abi: what to compile for.
        variant: of that ABI; None: code that runs on every device of it.
    """
    cpu = _CPUS[abi]
    attributes = [*cpu["mattr"], *(_FEATURES[variant] if variant else ())]
    return {"kind": "llvm", "mtriple": triple_for(abi), **cpu, "mattr": attributes}
