"""Dot products of a few bytes or shorts, summed into every lane of a register by one instruction.

A schedule names one of these; TVM replaces the loops over lanes and terms by LLVM's intrinsic.
"""

# mypy: disable-error-code="untyped-decorator"
# What stands under TVM's decorator is its own language; Python never runs it.

from __future__ import annotations

from tvm.s_tir import TensorIntrin
from tvm.script import tirx as T  # noqa: N812 - the parser's own name for it

from workers.backends.cpu.vectors import DotProduct


def dot_intrinsic(dot: DotProduct, lanes: int) -> str:
    """The name under which TVM knows `c[lane] += sum(a[term] * b[lane, term])`."""
    name = f"nnfarm.{dot.intrinsic}.{lanes}"
    if TensorIntrin.get(name, allow_missing=True) is None:
        TensorIntrin.register(name, _meaning(dot, lanes), _instruction(dot, lanes))
    return name


def square_intrinsic(dot: DotProduct) -> str:
    """The name of `c[row, channel] += sum(a[row, term] * b[channel, term])`."""
    name = f"nnfarm.{dot.intrinsic}"
    if TensorIntrin.get(name, allow_missing=True) is None:
        TensorIntrin.register(name, _square_meaning(dot), _square_instruction(dot))
    return name


def _square_meaning(dot: DotProduct) -> object:
    side, terms, data, weight = dot.rows, dot.terms, dot.data, dot.weight

    @T.prim_func(s_tir=True)
    def meaning(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (side, terms), data, offset_factor=1)  # noqa: N806
        B = T.match_buffer(b, (side, terms), weight, offset_factor=1)  # noqa: N806
        C = T.match_buffer(c, (side, side), "int32", offset_factor=1, scope="local")  # noqa: N806
        with T.sblock("root"):
            T.reads(C[0:side, 0:side], A[0:side, 0:terms], B[0:side, 0:terms])
            T.writes(C[0:side, 0:side])
            for i, j, k in T.grid(side, side, terms):
                with T.sblock("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32")

    return meaning


def _square_instruction(dot: DotProduct) -> object:
    side, terms, intrinsic = dot.rows, dot.terms, dot.intrinsic
    data, weight = dot.data, dot.weight
    row, many = f"{data}x{terms}", f"{weight}x{side * terms}"
    sums = f"int32x{side * side}"

    @T.prim_func(s_tir=True)
    def multiply(a: T.handle, b: T.handle, c: T.handle) -> None:
        stride = T.int32()  # rows of the data stand anywhere, those of packed weights close
        A = T.match_buffer(  # noqa: N806
            a, (side, terms), data, offset_factor=1, strides=[stride, 1]
        )
        B = T.match_buffer(b, (side, terms), weight, offset_factor=1)  # noqa: N806
        C = T.match_buffer(c, (side, side), "int32", offset_factor=1, scope="local")  # noqa: N806
        with T.sblock("root"):
            T.reads(C[0:side, 0:side], A[0:side, 0:terms], B[0:side, 0:terms])
            T.writes(C[0:side, 0:side])
            C[0, T.ramp(T.int32(0), 1, side * side)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(intrinsic),
                C.vload([0, 0], dtype=sums),
                T.Shuffle(
                    [A.vload([0, 0], dtype=row), A.vload([1, 0], dtype=row)],
                    list(range(side * terms)),
                ),
                B.vload([0, 0], dtype=many),
                dtype=sums,
            )

    return multiply


def _meaning(dot: DotProduct, lanes: int) -> object:
    terms, data, weight = dot.terms, dot.data, dot.weight

    @T.prim_func(s_tir=True)
    def meaning(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (terms,), data, offset_factor=1)  # noqa: N806
        B = T.match_buffer(b, (lanes, terms), weight, offset_factor=1)  # noqa: N806
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")  # noqa: N806
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:terms], B[0:lanes, 0:terms])
            T.writes(C[0:lanes])
            for i in T.serial(0, lanes):
                for k in T.serial(0, terms):
                    with T.sblock("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")

    return meaning


def _instruction(dot: DotProduct, lanes: int) -> object:
    terms, data, weight = dot.terms, dot.data, dot.weight
    few, many = f"{data}x{terms}", f"{weight}x{lanes * terms}"
    # The terms of one lane travel as one int32: LLVM then broadcasts them from memory.
    operand = f"{data}x{lanes * terms}"
    sums, intrinsic = f"int32x{lanes}", dot.intrinsic

    if dot.accumulates:

        @T.prim_func(s_tir=True)
        def accumulate(a: T.handle, b: T.handle, c: T.handle) -> None:
            A = T.match_buffer(a, (terms,), data, offset_factor=1)  # noqa: N806
            B = T.match_buffer(b, (lanes, terms), weight, offset_factor=1)  # noqa: N806
            C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")  # noqa: N806
            with T.sblock("root"):
                T.reads(C[0:lanes], A[0:terms], B[0:lanes, 0:terms])
                T.writes(C[0:lanes])
                C[T.ramp(T.int32(0), 1, lanes)] = T.call_llvm_pure_intrin(
                    T.llvm_lookup_intrinsic_id(intrinsic),
                    C.vload([0], dtype=sums),
                    T.reinterpret(
                        T.broadcast(T.reinterpret(A.vload([0], dtype=few), dtype="int32"), lanes),
                        dtype=operand,
                    ),
                    B.vload([0, 0], dtype=many),
                    dtype=sums,
                )

        return accumulate

    @T.prim_func(s_tir=True)
    def multiply_then_add(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (terms,), data, offset_factor=1)  # noqa: N806
        B = T.match_buffer(b, (lanes, terms), weight, offset_factor=1)  # noqa: N806
        C = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")  # noqa: N806
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:terms], B[0:lanes, 0:terms])
            T.writes(C[0:lanes])
            C[T.ramp(T.int32(0), 1, lanes)] = C.vload([0], dtype=sums) + T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(intrinsic),
                T.reinterpret(
                    T.broadcast(T.reinterpret(A.vload([0], dtype=few), dtype="int32"), lanes),
                    dtype=operand,
                ),
                B.vload([0, 0], dtype=many),
                dtype=sums,
            )

    return multiply_then_add
