"""What a benchmark ran on; every result carries it, for a number without a machine says nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

_PACKAGES = ("apache-tvm", "apache-tvm-ffi", "onnxruntime", "numpy", "ziglang")


def describe_machine() -> dict[str, object]:
    """Processor, cores, memory, kernel, versions, load and time."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": memory_bytes >> 20,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "load_1min": os.getloadavg()[0],
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
