"""Where a scheduled kernel stores its result: an operand, or a part of a larger tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx


@dataclass(frozen=True)
class Blocks:
    """The blocks of a kernel that compute, and the buffer of its result, its last parameter."""

    function: tirx.PrimFunc
    output: tirx.Buffer
    leaves: tuple[s_tir.SBlock, ...]

    @classmethod
    def of(cls, function: tirx.PrimFunc) -> Blocks:
        """The kernel's blocks."""
        return cls(function, function.params[-1], tuple(_leaves(function.body)))

    @property
    def writers(self) -> list[s_tir.SBlock]:
        """Blocks that store results."""
        return [b for b in self.leaves if any(_is(write, self.output) for write in b.writes)]

    def can_move(self) -> bool:
        """Whether results are only stored, by statements that are understood, never read again."""
        is_read = any(_is(read, self.output) for block in self.leaves for read in block.reads)
        stores = [block.body for block in self.writers]
        return bool(stores) and not is_read and all(map(_is_store, stores))

    def can_overwrite(self, operand: int) -> bool:
        """Whether each result may take the place of an operand's element of the same index.

        One block reads that element, nothing else of the operand, and stores the result there.
        """
        buffer, writers = self.function.params[operand], self.writers
        readers = [b for b in self.leaves if any(_is(read, buffer) for read in b.reads)]
        if not self.can_move() or len(writers) != 1 or len(readers) != 1:
            return False
        (block,) = writers
        is_each = all(int(axis.iter_type) == tirx.IterVar.DataPar for axis in block.iter_vars)
        if not (readers[0].same_as(block) and is_each and block.init is None):
            return False
        read = [_element(region) for region in block.reads if _is(region, buffer)]
        stored = list(block.body.indices)
        return all(at is not None and tvm_ffi.structural_equal(at, stored) for at in read)


def overwriting(function: tirx.PrimFunc, operand: int) -> tirx.PrimFunc:
    """The kernel without its last parameter; the result replaces an operand.

    Args:
        function: one that `can_overwrite` it.
        operand: number of the parameter.
    """
    target = function.params[operand]
    return _stored(function, function.params[:-1], target, (0,) * len(target.shape))


def into_part(
    function: tirx.PrimFunc, shape: Sequence[int], axis: int, start: int
) -> tirx.PrimFunc:
    """The kernel with a larger tensor as its last parameter, of which it writes a part.

    Args:
        function: one that `can_move`.
        shape: of the larger tensor.
        axis: the two differ in.
        start: of the part on that axis.
    """
    *operands, part = function.params
    whole = tirx.decl_buffer([tirx.IntImm("int64", n) for n in shape], part.dtype, "whole")
    shift = tuple(start if position == axis else 0 for position in range(len(shape)))
    return _stored(function, [*operands, whole], whole, shift)


def _stored(
    function: tirx.PrimFunc,
    params: Sequence[tirx.Buffer],
    target: tirx.Buffer,
    shift: tuple[int, ...],
) -> tirx.PrimFunc:
    body = _Stores(function.params[-1], target, shift).moved(function.body)
    return tirx.PrimFunc(list(params), body, function.ret_type, function.attrs)


@dataclass(frozen=True)
class _Stores:
    """Statements with all stores into `source` going to `target` instead."""

    source: tirx.Buffer
    target: tirx.Buffer
    shift: tuple[int, ...]

    def moved(self, at: tirx.Stmt) -> tirx.Stmt:
        if isinstance(at, tirx.SeqStmt):
            return tirx.SeqStmt([self.moved(part) for part in at.seq])
        if isinstance(at, tirx.For):
            return tirx.For(
                at.loop_var, at.min, at.extent, at.kind, self.moved(at.body), at.thread_binding,
                at.annotations, at.step,
            )  # fmt: skip
        if isinstance(at, s_tir.SBlockRealize):
            return s_tir.SBlockRealize(at.iter_values, at.predicate, self._block(at.block))
        if isinstance(at, tirx.BufferStore) and at.buffer.same_as(self.source):
            return tirx.BufferStore(self.target, at.value, self._shifted(at.indices))
        return at

    def _block(self, block: s_tir.SBlock) -> s_tir.SBlock:
        return s_tir.SBlock(
            block.iter_vars,
            block.reads,
            [self._region(write) for write in block.writes],
            block.name_hint,
            self.moved(block.body),
            None if block.init is None else self.moved(block.init),
            block.alloc_buffers,
            block.match_buffers,
            block.annotations,
        )

    def _region(self, region: tvm.ir.TensorRegion) -> tvm.ir.TensorRegion:
        if not _is(region, self.source):
            return region
        starts = self._shifted([at.min for at in region.region])
        ranges = [
            tvm.ir.Range.from_min_extent(start, at.extent)
            for start, at in zip(starts, region.region, strict=True)
        ]
        return tirx.BufferRegion(self.target, ranges)

    def _shifted(self, index: Sequence[tirx.PrimExpr]) -> list[tirx.PrimExpr]:
        pairs = zip(index, self.shift, strict=True)
        return [at + tirx.IntImm("int64", by) if by else at for at, by in pairs]


def _leaves(at: tirx.Stmt) -> Iterator[s_tir.SBlock]:
    """Blocks without blocks in them."""
    if isinstance(at, tirx.SeqStmt):
        for part in at.seq:
            yield from _leaves(part)
    elif isinstance(at, tirx.For):
        yield from _leaves(at.body)
    elif isinstance(at, s_tir.SBlockRealize):
        inner = list(_leaves(at.block.body))
        yield from inner or [at.block]


def _is(region: tvm.ir.TensorRegion, buffer: tirx.Buffer) -> bool:
    return bool(region.source.same_as(buffer))


def _is_store(statement: tirx.Stmt) -> bool:
    return isinstance(statement, tirx.BufferStore)


def _element(region: tvm.ir.TensorRegion) -> list[tirx.PrimExpr] | None:
    """Index of a region of one element."""
    is_one = all(isinstance(at.extent, tirx.IntImm) and int(at.extent) == 1 for at in region.region)
    return [at.min for at in region.region] if is_one else None
