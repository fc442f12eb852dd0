"""What a target computes with: width and number of its vector registers."""

from __future__ import annotations

from dataclasses import dataclass

import tvm
from tvm.target import codegen


@dataclass(frozen=True)
class Vectors:
    """Vector registers of a target.

    Attributes:
        lanes: float32 values a register holds.
        registers: how many there are.
        folds_loads: whether arithmetic takes an unaligned memory operand, so that a value that is
            used once needs no register.
    """

    lanes: int
    registers: int
    folds_loads: bool


def vectors_of(target: tvm.target.Target) -> Vectors:
    """The registers LLVM allocates for a target."""
    architecture = str(target.attrs["mtriple"]).partition("-")[0]
    if architecture == "aarch64":
        return Vectors(lanes=4, registers=32, folds_loads=False)
    if architecture != "x86_64":
        return Vectors(lanes=4, registers=16, folds_loads=False)
    if codegen.target_has_features("avx512f", target):
        return Vectors(lanes=16, registers=32, folds_loads=True)
    if codegen.target_has_features("avx2", target):
        return Vectors(lanes=8, registers=16, folds_loads=True)
    return Vectors(lanes=4, registers=16, folds_loads=False)
