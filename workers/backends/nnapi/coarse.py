"""Real numbers that take 256 values at most: those of quantized tensors, and what is made of them.

Of such numbers many are equal, and NNAPI leaves open in which order it gives equal ones.
"""

from __future__ import annotations

from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, free_vars
from workers.graph.quantization import DEQUANTIZE

_KEEPING = frozenset(
    f"relax.{name}"
    for name in (
        *("concat", "expand_dims", "permute_dims", "reshape", "split", "squeeze", "strided_slice"),
        *("clip", "nn.pad", "nn.relu", "nn.softmax", "sigmoid", "astype"),
    )
)
"""Operators whose results are equal where what they read is."""


def coarse_variables(graph: Graph) -> frozenset[relax.Var]:
    """All such variables of a graph."""
    found: set[relax.Var] = set()
    for binding in graph.bindings:
        is_kept = isinstance(binding.value, relax.TupleGetItem) or binding.op_name in _KEEPING
        is_made = is_kept and not found.isdisjoint(free_vars(binding.value))
        if is_made or _is_dequantized(binding):
            found.add(binding.var)
    return frozenset(found)


def _is_dequantized(binding: Binding) -> bool:
    call = binding.call
    return call is not None and call.op.name == DEQUANTIZE and constant_value(call.args[0]) is None
