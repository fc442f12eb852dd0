"""A kernel under schedule: one fused TIR function and what the rules ask about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import s_tir, tirx

from workers.backends.cpu.vectors import Vectors

MIN_SHARED_WORK = 1 << 16
"""Multiply-adds for each lane of a register below which a kernel stays on one thread: about 15
microseconds. Handing work to TVM's threads takes 3 of them even where there is only one thread,
and some more until the others have begun."""

MOVING = 8
"""Multiply-adds that take the time of moving one element through memory."""

FUNCTION = 24
"""Multiply-adds of a polynomial and what is around it, for one element."""


MAX_LANES = 16
"""Innermost loop length that every target's registers are enough for."""

IS_SCALAR = {"nnfarm.scalar": 1}
"""Annotation of a block that has no vector form."""


class NotCovered(Exception):  # noqa: N818 - an answer, not an error
    """The rule does not fit the kernel."""


@dataclass(frozen=True)
class Kernel:
    """A schedule with its blocks in order of computation."""

    sch: s_tir.Schedule
    blocks: tuple[object, ...]
    vectors: Vectors

    @classmethod
    def of(cls, function: tirx.PrimFunc, vectors: Vectors) -> Kernel:
        """A fresh schedule of a function.

        Raises:
            NotCovered: the function has no block structure to schedule.
        """
        sch = s_tir.Schedule(function.with_attr("global_symbol", "main"))
        blocks = tuple(sch.get_child_blocks(sch.get_sblock("root")))
        if not blocks:
            raise NotCovered("no blocks")
        if any(key in sch.get(b).annotations for b in blocks for key in IS_SCALAR):
            raise NotCovered("a function without a vector form")
        return cls(sch, blocks, vectors)

    @property
    def is_touched(self) -> bool:
        """Whether something was scheduled already, not only looked at."""
        return any(not inst.kind.name.startswith("Get") for inst in self.sch.trace.insts)

    def share(self, loop: object, work: int) -> None:
        """Splits a loop among threads, where that saves more than it costs.

        Args:
            loop: the outermost one.
            work: multiply-adds of the whole kernel, or what takes as long.
        """
        if work >= MIN_SHARED_WORK * self.vectors.lanes:
            self.sch.parallel(loop)

    def vector_length(self, extent: int) -> int:
        """A divisor of a loop's length to make vectors of, of several registers where it can.

        What one register holds is one chain of operations, each of which waits for the one before;
        several make several. What does not fill registers leaves a part of the last one idle.
        """
        native = self.vectors.lanes
        longest = max(MAX_LANES, native * (4 if self.vectors.registers >= 32 else 2))
        candidates = [n for n in range(1, min(longest, extent) + 1) if extent % n == 0]
        return min(candidates, key=lambda n: (-(-n // native) / n, -n))

    def axes(self, block: object) -> tuple[int, int]:
        """Number of spatial and of reduction axes of a block.

        Raises:
            NotCovered: it has an axis of another kind, or loops that are not its axes.
        """
        kinds = [int(axis.iter_type) for axis in self.sch.get(block).iter_vars]
        spatial = kinds.count(tirx.IterVar.DataPar)
        reduced = kinds.count(tirx.IterVar.CommReduce)
        is_ordered = kinds == [tirx.IterVar.DataPar] * spatial + [tirx.IterVar.CommReduce] * reduced
        if not is_ordered or len(self.sch.get_loops(block)) != len(kinds):
            raise NotCovered("an opaque axis")
        return spatial, reduced

    @property
    def reductions(self) -> tuple[object, ...]:
        """Blocks that reduce."""
        return tuple(block for block in self.blocks if self.axes(block)[1])

    def extent(self, loop: object) -> int:
        """Iterations of a loop.

        Raises:
            NotCovered: they are not known when compiling.
        """
        extent = self.sch.get(loop).extent
        if not isinstance(extent, int | tirx.IntImm):
            raise NotCovered("a loop of unknown length")
        return int(extent)

    def extents(self, loops: Sequence[object]) -> list[int]:
        """Iterations of each loop."""
        return [self.extent(loop) for loop in loops]

    def index(self, block: object) -> int:
        """Position of a block in the order of computation."""
        wanted = self.sch.get(block)
        return next(i for i, b in enumerate(self.blocks) if self.sch.get(b).same_as(wanted))

    def depth(self, block: object, loop: object) -> int:
        """How many loops of a block are outside of and including `loop`."""
        wanted = self.sch.get(loop)
        loops = self.sch.get_loops(block)
        return 1 + next(i for i, at in enumerate(loops) if self.sch.get(at).same_as(wanted))

    def size(self, block: object) -> int:
        """Elements a block writes."""
        return math.prod(int(n) for n in self.sch.get(block).writes[0].source.shape)

    def producers(self, block: object) -> tuple[object, ...]:
        """Blocks that a block reads, directly or not; others that stand before it are inlined.

        Those others make a second operand of its epilogue: the other branch of a residual.
        """
        feeding = [self.sch.get(block)]
        found: list[object] = []
        for candidate in reversed(self.blocks[: self.index(block)]):
            consumers = [self.sch.get(c) for c in self.sch.get_consumers(candidate)]
            if any(c.same_as(known) for c in consumers for known in feeding):
                feeding.append(self.sch.get(candidate))
                found.append(candidate)
            else:
                self.sch.compute_inline(candidate)
        return tuple(reversed(found))

    def inline_consumers(self, block: object) -> tuple[object | None, object | None]:
        """Inlines the element-wise blocks after a sum into the ones that write to memory.

        A consumer that is larger than the sum broadcasts it (the gate of a squeeze-and-excite
        block): inlined, it would compute the sum's epilogue again for every pixel.

        Returns:
            The block that writes the sum's epilogue, and the one that writes what is broadcast
            from it; None for what there is not.
        """
        after = self.blocks[self.index(block) + 1 :]
        if not after:
            return None, None
        size = self.size(after[0])
        count = next((i for i, b in enumerate(after) if self.size(b) != size), len(after))
        same, larger = after[:count], after[count:]
        for consumer in (*same[:-1], *larger[:-1]):
            self.sch.compute_inline(consumer)
        return same[-1], larger[-1] if larger else None

    def annotation(self, block: object, key: str) -> object | None:
        """What an operator's own lowering noted about a block."""
        return dict(self.sch.get(block).annotations).get(key)


def divisor(extent: int, candidates: Sequence[int]) -> int:
    """The first candidate that divides, or 1."""
    return next((c for c in candidates if extent % c == 0), 1)
