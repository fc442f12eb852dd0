"""What a target computes with: width and number of its vector registers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import tvm
from tvm.target import codegen


@dataclass(frozen=True)
class DotProduct:
    """An instruction that multiplies neighbours and adds the products to each other.

    Attributes:
        intrinsic: LLVM's name of it.
        terms: neighbours that are summed into one int32 lane.
        data: dtype of the broadcast operand.
        weight: dtype of the other one.
        accumulates: whether it adds to a third operand as well.
        rows: of the data that it multiplies with as many channels' weights at once, into a register
            of all their sums; 1: one with each lane's.
    """

    intrinsic: str
    terms: int
    data: str
    weight: str
    accumulates: bool
    rows: int = 1


@dataclass(frozen=True)
class Vectors:
    """Vector registers of a target.

    Attributes:
        lanes: float32 values a register holds.
        registers: how many there are.
        folds_loads: whether arithmetic takes an unaligned memory operand, so that a value that is
            used once needs no register.
        dots: dot products of integers, the fastest first; every lane is an int32.
        converts_halves: whether an instruction makes a register of float32 of float16 in memory.
        computes_halves: whether there is arithmetic on registers of float16.
    """

    lanes: int
    registers: int
    folds_loads: bool
    dots: tuple[DotProduct, ...] = ()
    converts_halves: bool = False
    computes_halves: bool = False

    def of(self, dtype: str) -> Vectors:
        """The registers as those of another type of number."""
        return replace(self, lanes=2 * self.lanes) if dtype == "float16" else self


def vectors_of(target: tvm.target.Target) -> Vectors:
    """The registers LLVM allocates for a target."""
    architecture = str(target.attrs["mtriple"]).partition("-")[0]
    if architecture == "aarch64":
        features = {"i8mm": _SMMLA, "dotprod": _SDOT}
        dots = tuple(d for f, d in features.items() if codegen.target_has_features(f, target))
        halves = codegen.target_has_features("fullfp16", target)
        return Vectors(
            4, 32, folds_loads=False, dots=dots, converts_halves=True, computes_halves=halves
        )
    if architecture != "x86_64":
        return Vectors(lanes=4, registers=16, folds_loads=False)
    halves = codegen.target_has_features("f16c", target)
    if codegen.target_has_features("avx512f", target):
        dots = _dots_of_512_bits(target)
        return Vectors(16, 32, folds_loads=True, dots=dots, converts_halves=halves)
    if codegen.target_has_features("avx2", target):
        dots = (_pairs("llvm.x86.avx2.pmadd.wd"),)
        return Vectors(8, 16, folds_loads=True, dots=dots, converts_halves=halves)
    return Vectors(4, 16, folds_loads=False, dots=(_pairs("llvm.x86.sse2.pmadd.wd"),))


def _dots_of_512_bits(target: tvm.target.Target) -> tuple[DotProduct, ...]:
    pairs = (_pairs("llvm.x86.avx512.pmaddw.d.512"),)
    if codegen.target_has_features("avx512vnni", target):
        return (_VPDPBUSD, *pairs)
    return pairs if codegen.target_has_features("avx512bw", target) else ()


def _pairs(intrinsic: str) -> DotProduct:
    # Of shorts: the instruction for bytes (pmaddubsw) saturates its sums.
    return DotProduct(intrinsic, 2, "int16", "int16", accumulates=False)


_VPDPBUSD = DotProduct("llvm.x86.avx512.vpdpbusd.512", 4, "uint8", "int8", accumulates=True)
_SDOT = DotProduct("llvm.aarch64.neon.sdot.v4i32.v16i8", 4, "int8", "int8", accumulates=True)
_SMMLA = DotProduct("llvm.aarch64.neon.smmla.v4i32.v16i8", 8, "int8", "int8", True, rows=2)
