"""Concats without copies: kernels write their result into its place in the concat's.

The first of them takes memory for the whole; the others write into that. What cannot be written
there (another reader, a constant, the network's input) is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from workers.backends.cpu.modules import rewritten
from workers.backends.cpu.operators.concat import CONCAT
from workers.backends.cpu.schedule import schedule
from workers.backends.cpu.stores import Blocks, into_part
from workers.backends.cpu.tensors import Tensors
from workers.backends.cpu.vectors import Vectors
from workers.graph.graph import static_shape

MAX_COPIES = 1
"""Parts that are copied in the place of one kernel that copies all: calls cost, too."""


def write_into_concats(module: tvm.IRModule, vectors: Vectors) -> tvm.IRModule:
    """The module without the concats whose parts are kernels' results that nothing else reads.

    Args:
        module: scheduled, still in dataflow form, with reshapes as `relax.reshape`.
        vectors: of the target, for kernels that copy.
    """
    tensors = Tensors.of(module)
    concats = {var: found for var in tensors.calls if (found := _concat_of(tensors, var))}
    if not concats:
        return module
    written = rewritten(module, _Writer(module, tensors, concats, vectors))
    result: tvm.IRModule = relax.transform.DeadCodeElimination()(written)
    return result


@dataclass(frozen=True)
class _Part:
    """One operand of a concat: where it goes, and whether its kernel writes it there."""

    concat: relax.Var
    source: relax.Expr
    start: int
    axis: int
    is_written: bool


def _concat_of(tensors: Tensors, var: relax.Var) -> Sequence[_Part]:
    """The parts of a concat that is worth it; none of anything else."""
    kernel = tensors.kernel_of(var)
    if kernel is None or CONCAT not in kernel.attrs or var not in tensors.readers:
        return ()
    axis, operands = int(kernel.attrs[CONCAT]), list(tensors.calls[var].args[1].fields)
    sizes = [(static_shape(operand) or ())[axis] for operand in operands]
    parts = []
    for operand, end, size in zip(operands, accumulate(sizes), sizes, strict=True):
        is_once = sum(other.same_as(operand) for other in operands) == 1
        is_written = is_once and _is_movable(tensors, operand)
        parts.append(_Part(var, operand, end - size, axis, is_written))
    copied = [size for part, size in zip(parts, sizes, strict=True) if not part.is_written]
    if len(copied) > MAX_COPIES or 2 * sum(copied) > sum(sizes):
        return ()
    return parts


def _is_movable(tensors: Tensors, operand: relax.Expr) -> bool:
    if not isinstance(operand, relax.Var) or not tensors.is_private(operand):
        return False
    kernel = tensors.kernel_of(operand)
    if kernel is None or len(tensors.readers[operand]) != 1:
        return False
    return CONCAT not in kernel.attrs and Blocks.of(kernel).can_move()


@mutator
class _Writer(PyExprMutator):  # type: ignore[misc]
    """One walk over every Relax function."""

    def __init__(
        self,
        module: tvm.IRModule,
        tensors: Tensors,
        concats: Mapping[relax.Var, Sequence[_Part]],
        vectors: Vectors,
    ) -> None:
        super().__init__(module)
        self._module, self._tensors, self._vectors = module, tensors, vectors
        self._concats = concats
        self._written = {
            part.source: part for parts in concats.values() for part in parts if part.is_written
        }
        self._wholes: dict[relax.Var, relax.Expr] = {}  # so far, by the concat's variable

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        """PyExprMutator's name for it."""
        var = binding.var
        if var in self._written:
            call = binding.value
            self._write(
                self._written[var], self._module[call.args[0]], call.args[0].name_hint,
                call.args[1].fields,
            )  # fmt: skip
        elif var in self._concats:
            for part in self._concats[var]:
                if not part.is_written:
                    self._write(part, self._copy(part), "copy", [part.source])
            self.set_var_remap(var, self._wholes[var])
        else:
            super().visit_var_binding_(binding)

    def _write(
        self, part: _Part, kernel: tirx.PrimFunc, name: str, operands: Sequence[relax.Expr]
    ) -> None:
        """Calls a kernel with the whole as its last argument."""
        ty, before = part.concat.ty, self._wholes.get(part.concat)
        function = into_part(kernel, static_shape(part.concat) or (), part.axis, part.start)
        variable = self.builder_.add_func(function, name)
        args = [self.visit_expr(operand) for operand in operands]
        if before is None:
            call = relax.call_tir(variable, relax.Tuple(args), ty)
        else:
            args.append(before)
            call = relax.op.call_tir_inplace(variable, relax.Tuple(args), len(args) - 1, ty)
        self._wholes[part.concat] = self.builder_.emit(call)

    def _copy(self, part: _Part) -> tirx.PrimFunc:
        shape = static_shape(part.source) or ()
        source = te.placeholder(shape, part.source.ty.dtype, "source")
        copied = te.compute(shape, lambda *at: source[at], name="copy")
        function = te.create_prim_func([source, copied])
        scheduled, _ = schedule(tvm.IRModule({"copy": function}), self._vectors)
        return scheduled["copy"].without_attr("global_symbol")
