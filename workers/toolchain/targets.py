"""What TVM compiles for, per Android ABI: the least every device of that ABI has."""

from __future__ import annotations

from typing import Any

from service.contracts.targets import Abi

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


def target_for(abi: Abi) -> dict[str, Any]:
    """The dictionary `tvm.target.Target` takes for code that runs on every device of an ABI."""
    return {"kind": "llvm", "mtriple": triple_for(abi), **_CPUS[abi]}
