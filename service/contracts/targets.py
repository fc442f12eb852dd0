"""What a model is compiled for: NNAPI feature levels and Android ABIs."""

from __future__ import annotations

from enum import StrEnum

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
