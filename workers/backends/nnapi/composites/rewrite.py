"""What the composites are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.axes import MAX_RANK
from workers.graph.graph import Graph, constant_value, static_shape
from workers.graph.quantization import DEQUANTIZE, dequantize, quantization_of, quantize
from workers.graph.rewriter import GraphRewriter, Lazy

Emit = Callable[[relax.Expr], relax.Expr]

Rewrite = Callable[[Emit, relax.Call, Sequence[relax.Expr]], "relax.Expr | None"]
"""What computes on real numbers: emit, the old call, its new arguments; None leaves it as it is."""


LAST_EXACT, LAST_EXACT_HALF = 2**24, 2**11
"""Integers above these have no float32, or float16, of their own."""


@dataclass(frozen=True)
class Place:
    """Where a call stands.

    Attributes:
        graph: the old graph.
        rewriter: of the new one.
        level: feature level to be claimed for.
        half: whether float32 tensors will be computed as float16.
        memo: what calls that belong together share, by the old call's variable.
        unshaped: what `reshaped` gave, and of what; both of the new graph.
    """

    graph: Graph
    rewriter: GraphRewriter
    level: int
    half: bool
    memo: dict[relax.Var, relax.Expr] = field(default_factory=dict)
    unshaped: dict[relax.Expr, relax.Expr] = field(default_factory=dict)

    def emit(self, expr: relax.Expr, *absorbed: relax.Expr) -> relax.Expr:
        """Bind an expression of the new graph.

        Args:
            expr: of the new graph.
            absorbed: old variables whose operations it does besides its own.
        """
        if not absorbed:
            return self.rewriter.emit(expr)
        origins = (self.graph.origin_of(v) for v in absorbed if isinstance(v, relax.Var))
        return self.rewriter.emit(expr, self.rewriter.current_origins.union(*origins))

    def new(self, expr: relax.Expr) -> relax.Expr:
        """The new graph's expression for one of the old graph."""
        return self.rewriter.new(expr)

    def reshaped(self, value: relax.Expr, shape: Sequence[int]) -> relax.Expr:
        """Bind a value of the new graph in another shape; past a shape too high for NNAPI."""
        is_low = len(static_shape(value) or ()) <= MAX_RANK
        source = value if is_low else self.unshaped.get(value, value)
        if static_shape(source) == tuple(shape):
            return source
        origins = self.rewriter.current_origins
        if origins:  # else it is at a border, and nobody's
            origins |= self.rewriter.origins_of(value)
        result = self.rewriter.emit(relax.op.reshape(source, list(shape)), origins)
        self.unshaped[result] = source
        return result

    def counts_exactly(self, count: int) -> bool:
        """Whether the real numbers of the model hold all integers up to a count."""
        return count <= (LAST_EXACT_HALF if self.half else LAST_EXACT)

    def producer(self, expr: relax.Expr, name: str) -> relax.Call | None:
        """The old graph's call that makes an expression, if it is of that Relax operator."""
        return self.graph.producer(expr, name)

    def variable_of(self, call: relax.Call) -> relax.Var | None:
        """The old graph's variable that a call is bound to."""
        return next((b.var for b in self.graph.bindings if b.value.same_as(call)), None)

    def only_reader(self, call: relax.Call) -> relax.Call | None:
        """The one call of the old graph that reads another's result, if there is just one."""
        var = self.variable_of(call)
        readers = self.graph.users.get(var, ()) if var is not None else ()
        return readers[0].call if len(readers) == 1 else None

    def real_constant(self, expr: relax.Expr) -> NDArray[np.generic] | None:
        """Real values of a constant of the old graph, quantized or not; None where it is none."""
        call = self.producer(expr, DEQUANTIZE)
        if call is None:
            return constant_value(expr)
        array, numbers = constant_value(call.args[0]), quantization_of(call)
        return None if array is None or numbers is None else numbers.dequantize(array)

    def moved(self, source: relax.Expr, movement: relax.Expr) -> relax.Expr:
        """Bind what only moves elements of an old expression; quantized as that is.

        Args:
            source: of the old graph.
            movement: of its value in the new graph.
        """
        value = self.emit(movement)
        call = self.producer(source, DEQUANTIZE)
        numbers = quantization_of(call) if call is not None else None
        if numbers is None or not numbers.is_per_tensor:
            return value
        return self.emit(dequantize(self.emit(quantize(value, numbers)), numbers))


Composite = Callable[[Place, relax.Call], "relax.Expr | Lazy | None"]
"""What needs more than its arguments; None leaves the call as it is."""


def real(value: float) -> relax.Expr:
    """A constant of one float32."""
    return relax.const(np.float32(value), "float32")
