"""This machine as a place to measure: the ABI whose code it runs, and its name."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import tvm
from tvm.target import codegen

from service.contracts.errors import NnfarmError
from service.contracts.targets import Abi
from workers.toolchain.targets import target_for

PARALLEL_CORES = 8
"""Cores that search spaces cut loops for: those of a phone, not of this machine."""

_ABIS = {"x86_64": Abi.X86_64, "aarch64": Abi.ARM64_V8A}


def host_abi() -> Abi:
    """The ABI whose instructions this machine has.

    Raises:
        NnfarmError: `tune.unsupported_host`.
    """
    machine = platform.machine()
    if machine not in _ABIS:
        raise NnfarmError("tune.unsupported_host", f"No Android ABI runs on a {machine} machine.")
    return _ABIS[machine]


def host_target(abi: Abi) -> tvm.target.Target:
    """What is compiled for `abi`, to run here: its processor features, this system's calls."""
    return tvm.target.Target(
        target_for(abi) | {"mtriple": codegen.llvm_get_system_triple(), "num-cores": PARALLEL_CORES}
    )


def machine_name() -> str:
    """The processor, and how many of its cores this process may use."""
    cores = len(os.sched_getaffinity(0))
    return f"{_processor()}, {cores} core{'s' if cores > 1 else ''}"[:200]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
